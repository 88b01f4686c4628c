"""Files of models, data and maps."""

from manifoldry.io.columns import ColumnChoice
from manifoldry.io.extras import MissingExtraError
from manifoldry.io.model_file import ModelInfo, load, read_info, save
from manifoldry.io.model_values import DamagedModelError, UnsavableError
from manifoldry.io.read import read_table
from manifoldry.io.table import DataFileError, Table
from manifoldry.io.write import write_map, write_table

__all__ = [
    "ColumnChoice",
    "DamagedModelError",
    "DataFileError",
    "MissingExtraError",
    "ModelInfo",
    "Table",
    "UnsavableError",
    "load",
    "read_info",
    "read_table",
    "save",
    "write_map",
    "write_table",
]
