"""Carreira-Perpiñán, the elastic embedding algorithm for dimensionality reduction.

Run ``python papers/carreira2010-elastic-embedding/run.py``; README.md in this folder describes the
tests. The experiments are in seven files: `rolls`, `critical` (bifurcations),
`searches`, `minima`, `coil` (images), `learned` (affinities) and `beyond` (extrapolation).
"""

import sys
from pathlib import Path

from beyond import beyond_the_edge
from coil import new_views, objects_on_a_turntable
from critical import bifurcation, series_of_bifurcations
from learned import homotopies_of_sne, learned_in_spectral, learned_in_spectral_coil
from minima import global_convergence, large_weights, stationary_points, ways_of_training
from rolls import rolls
from searches import directions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import main

if __name__ == "__main__":
    main(
        __file__,
        "Carreira-Perpiñán, The elastic embedding algorithm for dimensionality reduction",
        [
            rolls,
            bifurcation,
            large_weights,
            stationary_points,
            directions,
            global_convergence,
            ways_of_training,
            objects_on_a_turntable,
            new_views,
            learned_in_spectral,
            learned_in_spectral_coil,
            homotopies_of_sne,
            series_of_bifurcations,
            beyond_the_edge,
        ],
    )
