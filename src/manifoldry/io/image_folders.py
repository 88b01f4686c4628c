"""Folders of images of one size; each image is a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.io.extras import optional_module
from manifoldry.io.table import Column, DataFileError, Table

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def read_image_folder(folder: Path) -> Table:
    """Pixels between 0 and 1, in gray or in color; names of subfolders are labels."""
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _SUFFIXES and p.is_file())
    if not files:
        raise DataFileError(
            f"{folder} has no images ({', '.join(sorted(_SUFFIXES))}); name a file, or a folder of "
            "images"
        )
    pixels = [_pixels(file) for file in files]
    if any(image.ndim == 3 for image in pixels):
        pixels = [_in_color(image) for image in pixels]
    for file, image in zip(files, pixels, strict=True):
        if image.shape != pixels[0].shape:
            raise DataFileError(
                f"{file} has {_size(image)} pixels, but {files[0]} has {_size(pixels[0])}; scale "
                "all images to one size first"
            )
    X = np.stack([image.ravel() for image in pixels])
    names = np.array([file.relative_to(folder).as_posix() for file in files])
    shape = pixels[0].shape
    note = f"{len(files)} images of {_size(pixels[0])} pixels" + ", in color" * (len(shape) == 3)
    return Table(X, None, names, _folders(files, folder), (note,), image_shape=shape)


def _pixels(file: Path) -> Column:
    """An image as numbers: (height, width) if it is gray, otherwise (height, width, 3)."""
    image = optional_module("PIL.Image", "cli", "reading images")
    try:
        with image.open(file) as opened:
            gray = opened.mode in ("1", "L", "LA", "I", "F", "I;16")
            values = np.asarray(opened.convert("F" if gray else "RGB"), dtype=np.float32)
            largest = 65_535 if opened.mode.startswith("I") else 255
    except PermissionError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        reason = str(error).splitlines()[0][:120]
        raise DataFileError(f"{file} is damaged, or no image: {reason}; remove it") from error
    except image.DecompressionBombError as error:
        raise DataFileError(f"{file} is too large an image: {error}") from error
    return values / np.float32(largest)


def _in_color(image: Column) -> Column:
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def _folders(files: list[Path], folder: Path) -> dict[str, Any]:
    """The subfolder of each image, if there are several."""
    parents = [file.parent.relative_to(folder).as_posix() for file in files]
    return {"folder": np.array(parents)} if len(set(parents)) > 1 else {}


def _size(image: Column) -> str:
    return f"{image.shape[1]} × {image.shape[0]}"
