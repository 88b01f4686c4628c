"""Blau & Michaeli, non-redundant spectral dimensionality reduction.

Run ``python papers/blau2017-nonredundant/run.py``; README.md in this folder describes the
tests. The experiments are in three files by kind of data: `synthetic`, `images`, `mnist`. Where a
bandwidth α is named, the method is the publication's (``criterion="prediction"``); "gradient" is
the library's default.
"""

import sys
from pathlib import Path

from images import faces, image_patches
from mnist import (
    classification,
    errors_of_prediction,
    few_labels,
    local_linear,
    run_time,
    singular_values,
)
from synthetic import directions, rate, ring, roll_sensitivity, rolls, strips

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import main

if __name__ == "__main__":
    main(
        __file__,
        "Blau & Michaeli, Non-redundant spectral dimensionality reduction",
        [
            rolls,
            strips,
            ring,
            roll_sensitivity,
            rate,
            directions,
            faces,
            image_patches,
            singular_values,
            errors_of_prediction,
            run_time,
            local_linear,
            classification,
            few_labels,
        ],
    )
