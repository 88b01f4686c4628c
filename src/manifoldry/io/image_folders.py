"""Folders of images of one size; each image is a row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.io.extras import optional_module
from manifoldry.io.table import Column, DataFileError, Table

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def read_image_folder(folder: Path) -> Table:
    """Pixels between 0 and 1, in gray or in color; names of subfolders are labels.

    Images of floating-point numbers keep their values.
    """
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _SUFFIXES and p.is_file())
    if not files:
        raise DataFileError(
            f"{folder} has no images ({', '.join(sorted(_SUFFIXES))}); name a file, or a folder of "
            "images"
        )
    pixels: list[Column] = []
    remarks: Counter[str] = Counter()
    for file in files:
        image, found = _pixels(file)
        if pixels and image.shape[:2] != pixels[0].shape[:2]:
            raise DataFileError(
                f"{file} has {_size(image)} pixels, but {files[0]} has {_size(pixels[0])}; scale "
                "all images to one size first"
            )
        pixels.append(image)
        remarks.update(found)
    if any(image.ndim == 3 for image in pixels):
        pixels = [_in_color(image) for image in pixels]
    X = np.stack([image.ravel() for image in pixels])
    names = np.array([file.relative_to(folder).as_posix() for file in files])
    shape = pixels[0].shape
    note = f"{len(files)} images of {_size(pixels[0])} pixels" + ", in color" * (len(shape) == 3)
    notes = (note, *(f"{count} images {remark}" for remark, count in remarks.items()))
    return Table(X, None, names, _folders(files, folder), notes, image_shape=shape)


def _pixels(file: Path) -> tuple[Column, list[str]]:
    """An image as numbers, and what is said about it.

    The shape is (height, width) if the image is gray, otherwise (height, width, 3).
    """
    image = optional_module("PIL.Image", "cli", "reading images")
    try:
        with image.open(file) as opened:
            mode, remarks = opened.mode, _remarks(opened)
            gray = mode in ("1", "L", "LA", "La", "F") or mode.startswith("I")
            values = np.asarray(opened.convert("F" if gray else "RGB"), dtype=np.float32)
    except PermissionError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        reason = str(error).splitlines()[0][:120]
        raise DataFileError(f"{file} is damaged, or no image: {reason}; remove it") from error
    except image.DecompressionBombError as error:
        raise DataFileError(f"{file} is too large an image: {error}") from error
    largest = 1 if mode == "F" else 65_535 if mode.startswith("I") else 255
    return values / np.float32(largest), remarks


def _remarks(opened: Any) -> list[str]:
    """What of an opened image is not used, or not scaled."""
    facts = {
        "have several frames, of which the first is used": getattr(opened, "is_animated", False),
        "have transparency, which is not used": opened.mode.lower().endswith("a")
        or "transparency" in opened.info,
        "have floating-point numbers, which are not scaled": opened.mode == "F",
    }
    return [remark for remark, holds in facts.items() if holds]


def _in_color(image: Column) -> Column:
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def _folders(files: list[Path], folder: Path) -> dict[str, Any]:
    """The subfolder of each image, if there are several."""
    parents = [file.parent.relative_to(folder).as_posix() for file in files]
    return {"folder": np.array(parents)} if len(set(parents)) > 1 else {}


def _size(image: Column) -> str:
    return f"{image.shape[1]} × {image.shape[0]}"
