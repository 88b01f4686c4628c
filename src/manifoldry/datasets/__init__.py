"""Synthetic manifolds with known coordinates, and loaders of real data sets.

Generators (``make_*``) return a `ManifoldSample`: points and their true coordinates. Loaders
(``load_*``) return a `Dataset`; their files are searched in the directory named by the environment
variable ``MANIFOLDRY_DATA`` and then in `data_home`.
"""

from manifoldry.datasets.curved import make_hemisphere, make_ring
from manifoldry.datasets.curves import make_helix, make_partitioned_circle
from manifoldry.datasets.dataset import Dataset, ManifoldSample
from manifoldry.datasets.digits import load_mnist, load_usps
from manifoldry.datasets.images import (
    load_coil20,
    load_frey_faces,
    load_isomap_faces,
    load_photographs,
    load_rotating_monkey,
)
from manifoldry.datasets.sheets import make_s_curve, make_strip, make_swiss_roll
from manifoldry.datasets.storage import DataFormatError, DataNotFoundError, data_home, find_data
from manifoldry.datasets.tables import load_glove, load_pbmc

__all__ = [
    "DataFormatError",
    "DataNotFoundError",
    "Dataset",
    "ManifoldSample",
    "data_home",
    "find_data",
    "load_coil20",
    "load_frey_faces",
    "load_glove",
    "load_isomap_faces",
    "load_mnist",
    "load_pbmc",
    "load_photographs",
    "load_rotating_monkey",
    "load_usps",
    "make_helix",
    "make_hemisphere",
    "make_partitioned_circle",
    "make_ring",
    "make_s_curve",
    "make_strip",
    "make_swiss_roll",
]
