"""Advice that is worded for Python, and what stands in its place for other readers."""

from __future__ import annotations

import re
from typing import NamedTuple


class Hint(NamedTuple):
    """A part of a sentence: in Python, printed by the command, and on the page of a report.

    With `workers` the command prints something else if it computes on workers.
    """

    python: str
    command: str = ""
    page: str = ""
    workers: str | None = None


WHICH_POINTS = Hint(
    ": per_point['trustworthiness'] shows which points",
    ": manifoldry assess DATA MAP -o points.csv writes the value of each point",
    workers="",  # which assess samples
)
ALONG_GRAPH = Hint("; pass NeighborGraph.build(X) as X to compare with geodesic distances instead")
REDUNDANT = Hint("use NonRedundant", "use --method nonredundant", "use NonRedundant")
LOCAL_DIMENSION = Hint(" The attribute per_point holds the local dimension at each point.")
WHERE_IT_VARIES = Hint("Color a plot by per_point to see where; the", "The", "The")
STANDARDIZE = Hint(
    "for example with sklearn.preprocessing.StandardScaler", "with --scale", "with --scale"
)
ROW_DISTANCES = Hint(
    "novelty(X) of the estimator, in a pipeline of its last step, gives the distance of each row",
    "the column novelty has the distance of each row",
    "the column novelty of manifoldry transform has the distance of each row",
)
POSITION_DISTANCES = Hint(
    "; inverse_transform with return_distance=True of the estimator, in a pipeline of its last "
    "step, gives the distance of each position",
    "; the column distance_from_map has the distance of each position",
)
ON_THE_CPU = Hint(
    "to compute on the CPU pass device=None, or call model.set_params(device=None)",
    "to compute on the CPU leave out --device",
)
DEVICE_CPU = Hint("device='cpu'", "--device cpu")
SMALLER_CHUNKS = Hint(
    "pass smaller chunks, such as X.rechunk({0: 10_000}), or",
    "write the data in smaller chunks, or",
)
MORE_STEPS = Hint("pass DistributedLobpcg(max_iter=1000), or fit to", "fit to")
IN_CONTEXT = Hint("in a context manifoldry.distributed", "with manifoldry.distributed")
_LANDMARKS = re.compile(r"manifoldry\.distributed\.using_options\(landmarks=([\d_]+)\)")
_ALL = (WHICH_POINTS, ALONG_GRAPH, REDUNDANT, LOCAL_DIMENSION, WHERE_IT_VARIES, STANDARDIZE,
        ROW_DISTANCES, POSITION_DISTANCES, ON_THE_CPU, DEVICE_CPU, SMALLER_CHUNKS, MORE_STEPS,
        IN_CONTEXT)  # fmt: skip


def for_command(text: str, *, on_workers: bool = False) -> str:
    """The text with the advice of the command line; its lines may be wrapped."""
    for hint in _ALL:
        is_other = on_workers and hint.workers is not None
        text = _pattern(hint.python).sub((hint.workers or "") if is_other else hint.command, text)
    return _LANDMARKS.sub(lambda found: f"--landmarks {found[1].replace('_', '')}", text)


def for_page(text: str) -> str:
    """The text with the advice of a report."""
    for hint in _ALL:
        text = _pattern(hint.python).sub(hint.page, text)
    return text


def _pattern(text: str) -> re.Pattern[str]:
    """The words with any space between them."""
    before = r"\s+" * text.startswith(" ")
    return re.compile(before + r"\s+".join(re.escape(word) for word in text.split()))
