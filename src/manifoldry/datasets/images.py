"""Collections of images with a known or visible manifold, and single photographs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.datasets.dataset import Dataset, dataset_of
from manifoldry.datasets.registry import REGISTRY
from manifoldry.datasets.storage import fetch
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array


def load_coil20(*, objects: int | Iterable[int] | None = None) -> Dataset:
    """Load COIL-20: 20 objects on a turntable, 72 views each, 128×128 pixels.

    The views of an object form a closed curve in pixel space, so a good embedding shows rings.

    Parameters
    ----------
    objects : int or iterable of int, default=None
        Objects to keep, numbered 1 to 20; an integer keeps the objects from 1 up to it; None keeps
        all.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, `raw` the bytes, `y` the object from 1, `coordinates` the angle of
        view in degrees.

    See Also
    --------
    load_isomap_faces : faces of known pose and light.
    load_rotating_monkey : views of a head, turned about three axes.

    Examples
    --------
    >>> from manifoldry.datasets import load_coil20
    >>> coil = load_coil20(objects=10)  # doctest: +SKIP
    >>> coil  # doctest: +SKIP
    Dataset(coil20: 720 samples, images of 128×128 pixels)
    """
    wanted = _wanted_objects(objects)
    file = REGISTRY["coil20"]
    arrays = fetch(file)
    return dataset_of(
        file,
        arrays["images"],
        np.flatnonzero(np.isin(arrays["object"], wanted)),
        y=arrays["object"],
        coordinates=arrays["angle"],
        coordinate_names=("angle",),
    )


def load_isomap_faces(*, resolution: int = 32) -> Dataset:
    """Load the 698 rendered faces of the Isomap article, with light and pose.

    This is a reduced copy: gray images of 32×32 pixels, or images of 64×64 pixels thresholded to
    black and white. The parameters are standardized to mean 0 and deviation 1, not in degrees.

    Parameters
    ----------
    resolution : {32, 64}, default=32
        32 for the gray images, 64 for the black-and-white ones.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, `coordinates` are light, pose left-right and pose up-down.

    See Also
    --------
    load_frey_faces : photographs of one face in a video.
    load_coil20 : objects of known angle of view.

    Examples
    --------
    >>> from manifoldry.datasets import load_isomap_faces
    >>> faces = load_isomap_faces()  # doctest: +SKIP
    >>> faces.coordinates.shape  # doctest: +SKIP
    (698, 3)
    """
    if resolution not in (32, 64):
        raise ValueError(f"resolution={resolution!r} must be 32 (gray) or 64 (binary)")
    file = REGISTRY["isomap_faces32"]
    arrays = fetch(file)
    return dataset_of(
        file,
        arrays["images"] if resolution == 32 else _unpack(arrays["images64_binary_packed"]),
        coordinates=arrays["params_std"],
        coordinate_names=("light", "pose left-right", "pose up-down"),
    )


def load_frey_faces() -> Dataset:
    """Load the Frey faces: 1965 frames of one face on video, 28×20 pixels.

    There are no labels; the frames vary in expression and pose, in the order of the video.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, `raw` the bytes, `coordinates` the frame number.

    See Also
    --------
    load_isomap_faces : rendered faces of known pose.

    Examples
    --------
    >>> from manifoldry.datasets import load_frey_faces
    >>> load_frey_faces()  # doctest: +SKIP
    Dataset(frey_faces: 1965 samples, images of 28×20 pixels)
    """
    file = REGISTRY["frey_faces"]
    images = fetch(file)["images"]
    frame = np.arange(len(images))
    return dataset_of(file, images, coordinates=frame, coordinate_names=("frame",))


def load_rotating_monkey() -> Dataset:
    """Load 121 renderings of a head, 120×160 pixels: three full rotations that share one view.

    Frames 0–40, 40–80 and 80–120 are rotations about three different axes (boundaries are
    approximate), so the manifold is three closed curves joined at a point.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, `raw` the bytes, `coordinates` the frame number.

    See Also
    --------
    load_coil20 : objects turned about one axis.

    Examples
    --------
    >>> from manifoldry.datasets import load_rotating_monkey
    >>> load_rotating_monkey()  # doctest: +SKIP
    Dataset(rotating_monkey: 121 samples, images of 120×160 pixels)
    """
    file = REGISTRY["rotating_monkey"]
    arrays = fetch(file)
    frame = arrays["frame"]
    return dataset_of(file, arrays["images"], coordinates=frame, coordinate_names=("frame",))


# Public name → (file, key), for `load_photographs`.
_PHOTOGRAPHS = {
    "camera": ("photo_camera", "image"),
    "ascent": ("photos_more", "ascent"),
    "raccoon": ("photos_more", "raccoon_grey"),
    "chelsea": ("photos_more", "chelsea_grey"),
    "astronaut": ("photos_more", "astronaut_grey"),
    "brick": ("photos_more", "brick"),
    "grass": ("photos_more", "grass"),
}


def load_photographs(*, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Load gray photographs, for experiments on image patches.

    Parameters
    ----------
    names : iterable of str, default=None
        Some of camera, ascent, raccoon, chelsea, astronaut, brick and grass; None for all.

    Returns
    -------
    dict of str to ndarray
        Images as float32 in 0..1, of different sizes.

    See Also
    --------
    manifoldry.LieTransform : learns transformations of patches of images.

    Examples
    --------
    >>> from manifoldry.datasets import load_photographs
    >>> photographs = load_photographs(names=["camera"])  # doctest: +SKIP
    >>> photographs["camera"].shape  # doctest: +SKIP
    (512, 512)
    """
    wanted = [names] if isinstance(names, str) else list(_PHOTOGRAPHS if names is None else names)
    if unknown := [name for name in wanted if name not in _PHOTOGRAPHS]:
        raise ValueError(f"names={unknown} are unknown; pass some of {', '.join(_PHOTOGRAPHS)}")
    files = {file: fetch(REGISTRY[file]) for file in {_PHOTOGRAPHS[name][0] for name in wanted}}
    stored = {name: files[file][key] for name in wanted for file, key in [_PHOTOGRAPHS[name]]}
    return {name: image.astype(np.float32) / 255 for name, image in stored.items()}


def _wanted_objects(objects: int | Iterable[int] | None) -> list[int]:
    if objects is None:
        return list(range(1, 21))
    if not isinstance(objects, Iterable):
        objects = range(1, check_count("objects", objects) + 1)
    wanted = [check_count("object", number) for number in objects]
    if not wanted or max(wanted) > 20:
        raise ValueError(f"objects={wanted} must be integers from 1 to 20")
    return wanted


def _unpack(bits: NDArray[Any]) -> Array:
    return np.unpackbits(bits.astype(np.uint8), axis=1).reshape(-1, 64, 64).astype(np.float32)
