"""Registry of data files: arrays, checksum, source and license of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["integer", "float", "text"]


@dataclass(frozen=True)
class ArraySpec:
    """Name, shape and kind of an array in a data file, and the range of its numbers."""

    key: str
    shape: tuple[int, ...]
    kind: Kind
    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        return f"{self.key}: {self.kind} {'×'.join(map(str, self.shape))}"


@dataclass(frozen=True)
class DataFile:
    """One ``.npz`` file: its arrays, its source, and the checksum of a known good copy.

    A file that a user makes from the same source may differ in its bytes, so the checksum appears
    in messages but is not enforced; keys, shapes, kinds and ranges of numbers are.
    """

    name: str
    arrays: tuple[ArraySpec, ...]
    sha256: str
    source: str
    license: str
    downloadable: bool = False

    @property
    def filename(self) -> str:
        """Name of the file on disk."""
        return f"{self.name}.npz"

    def contents(self) -> str:
        """Description of the arrays for messages."""
        return "; ".join(map(str, self.arrays))


def _pixels(key: str, *shape: int) -> ArraySpec:
    return ArraySpec(key, shape, "integer", 0, 255)


def _numbers(key: str, count: int, low: int, high: int) -> ArraySpec:
    return ArraySpec(key, (count,), "integer", low, high)


_FILES = (
    DataFile(
        name="mnist",
        arrays=(_pixels("X", 70000, 784), _numbers("y", 70000, 0, 9)),
        sha256="54ddfe01bb1284d50e5473a31c590ba0e723949b611ce6e7604f2e9473754d8a",
        source="MNIST handwritten digits, 60000 for training then 10000 for testing; "
        "OpenML data set mnist_784",
        license="not stated by the source",
        downloadable=True,
    ),
    DataFile(
        name="usps",
        arrays=(ArraySpec("X", (9298, 256), "float", 0, 1), _numbers("y", 9298, 0, 9)),
        sha256="8841a5fb38f814c2139d61d7f687c416fc84bb4ef1b6cf0784c502eddb2918b2",
        source="USPS handwritten digits in 0..1, 7291 for training then 2007 for testing",
        license="not stated by the source",
    ),
    DataFile(
        name="coil20",
        arrays=(
            _pixels("images", 1440, 128, 128),
            _numbers("object", 1440, 1, 20),
            _numbers("angle", 1440, 0, 355),
        ),
        sha256="7453d6ef00126cc235697cda38b7c8b7c715ca169a3fa4a586f0cf1c169bfae8",
        source="COIL-20 of Columbia University (CAVE): 20 objects, 72 views each, 5° apart",
        license="not stated by the source",
    ),
    DataFile(
        name="isomap_faces32",
        arrays=(
            ArraySpec("images", (698, 32, 32), "float", 0, 1),
            ArraySpec("params_std", (698, 3), "float"),
            _pixels("images64_binary_packed", 698, 512),
        ),
        sha256="b30e8eb6a3cbd3e55d53ab078e7bd81e180825ff1ab402f55ec6f6afa1106a7d",
        source="the 698 rendered faces of the Isomap article, reduced to 32×32 gray, and "
        "thresholded at 64×64 (packed bits); light, left-right and up-down pose standardized",
        license="not stated by the source",
    ),
    DataFile(
        name="frey_faces",
        arrays=(_pixels("images", 1965, 28, 20),),
        sha256="3c70375e0a9c4751ad49ad5f1f692bd094c46f133cf4aa8ea77d1cb14e1efcd1",
        source="Frey faces, 1965 frames in video order; R package cems",
        license="not stated for the data (the R package is GPL-2)",
    ),
    DataFile(
        name="rotating_monkey",
        arrays=(_pixels("images", 121, 120, 160), _numbers("frame", 121, 0, 120)),
        sha256="27abb01e044727df72721c432ab2600dd49e5d85c8a18304e2f421c709469bf0",
        source="renderings of a head turned about three axes; python-ukr, rotatingMonkey",
        license="MIT",
    ),
    DataFile(
        name="glove100_top10000",
        arrays=(ArraySpec("X", (10000, 100), "float"), ArraySpec("words", (10000,), "text")),
        sha256="087cc9414838f5849e8f2fa68df908b7f6571c8ff0638aa4b020b95d02c5cff3",
        source="GloVe 6B word vectors, 100 dimensions, the 10000 most frequent words in order",
        license="PDDL 1.0",
    ),
    DataFile(
        name="pbmc68k_reduced",
        arrays=(
            ArraySpec("pca", (700, 50), "float"),
            ArraySpec("genes_scaled", (700, 765), "float"),
            _numbers("y", 700, 0, 9),
            ArraySpec("names", (10,), "text"),
        ),
        sha256="5e0cc7b164b6dcddd5df1e07f28c2cec3d07d2a6c280d15b12c20573a7314323",
        source="700 blood cells of 10 types (10x Genomics, Zheng 2017), as shipped with scanpy",
        license="not stated for the data (scanpy is BSD-3-Clause)",
    ),
    DataFile(
        name="photo_camera",
        arrays=(_pixels("image", 512, 512),),
        sha256="3c39fc9d3bf54fa48cf9a79042738d447ac92b800ce06a5b5521c81665cad105",
        source="the photograph of a cameraman shipped with scikit-image",
        license="CC0",
    ),
    DataFile(
        name="photos_more",
        arrays=(
            _pixels("ascent", 512, 512),
            _pixels("raccoon_grey", 768, 1024),
            _pixels("chelsea_grey", 300, 451),
            _pixels("astronaut_grey", 512, 512),
            _pixels("brick", 512, 512),
            _pixels("grass", 512, 512),
        ),
        sha256="2394a7de2bec40aa2f91b28cee8047fdca9173193d2747b1c5816c16b49be05c",
        source="photographs shipped with scipy (ascent, raccoon) and scikit-image, turned gray",
        license="CC0 or public domain",
    ),
)

REGISTRY: dict[str, DataFile] = {file.name: file for file in _FILES}
