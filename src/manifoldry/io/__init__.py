"""Files of models."""

from manifoldry.io.model_file import ModelInfo, load, read_info, save
from manifoldry.io.model_tree import DamagedModelError, UnsavableError

__all__ = ["DamagedModelError", "ModelInfo", "UnsavableError", "load", "read_info", "save"]
