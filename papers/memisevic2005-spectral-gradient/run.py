"""Memisevic & Hinton, improving dimensionality reduction with spectral gradient descent.

Run ``python papers/memisevic2005-spectral-gradient/run.py``; README.md beside this file says what
is tested and why. The experiments are in files by data and question: `circle`, `helix`, `s_curve`,
`larger` (sizes, bandwidths, many sets) and `starts` (when guidance helps a user).
"""

import sys
from pathlib import Path

from circle import aggregation, circle_curves, eigenvectors
from helix import helix, helix_from_spectrum
from larger import many_sets, sizes_and_bandwidths
from s_curve import coordinates, five_hundred_points, quasi_newton, two_hundred_points
from starts import starts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import main

if __name__ == "__main__":
    main(
        __file__,
        "Memisevic & Hinton, Improving dimensionality reduction with spectral gradient descent",
        [
            eigenvectors,
            circle_curves,
            aggregation,
            helix,
            helix_from_spectrum,
            two_hundred_points,
            five_hundred_points,
            quasi_newton,
            coordinates,
            starts,
            sizes_and_bandwidths,
            many_sets,
        ],
    )
