"""Data that outgrow one machine: Dask arrays and data frames, and Zarr and Parquet files.

Estimators take them in ``fit``, ``transform`` and ``inverse_transform``, and compute where the
Dask scheduler in use computes. Nothing here is imported before such data are passed.
"""

from manifoldry.distributed.options import DistributedOptions, using_options
from manifoldry.distributed.rows import Rows

__all__ = ["DistributedOptions", "Rows", "using_options"]
