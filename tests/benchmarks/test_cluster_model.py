"""The model of costs on clusters: how it grows, and that it fits what was measured."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("benchmarks are not part of the source distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import cluster_model, page  # noqa: E402 (the path has to be set first)
from benchmarks.cluster_model import Data, hundred_workers, predicted, this_machine  # noqa: E402

RECORDED = json.loads(cluster_model.RESULTS.read_text())["work"]
CONSTANTS = RECORDED["machine"]["constants"]
# Passes over the data. Where parts of a graph go is up to Dask, and the model says so.
LARGE = [
    name
    for name, work in RECORDED.items()
    if work.get("rows", 0) >= 10**6 and name.startswith(("pca", "landmarks"))
]


@pytest.mark.parametrize("name", LARGE)
def test_bytes_tasks_and_memory_are_those_that_were_measured(name):
    work, stages = RECORDED[name], RECORDED[name]["stages"].values()
    cluster = this_machine(CONSTANTS, 2, work["memory_limit"])
    data = Data(work["rows"], 50, 50_000)
    model = predicted(name.partition("-")[0], data, cluster)
    moved = sum(stage["workers_received"] for stage in stages)
    assert 1 / 3 < model["moved"] / moved < 3
    assert 1 / 1.5 < model["tasks"] / sum(stage["tasks"] for stage in stages) < 1.5
    assert 1 / 1.5 < model["memory"] / max(stage["peak"]["workers"] for stage in stages) < 1.5


def test_ten_million_rows_took_little_memory():
    large = [name for name in LARGE if RECORDED[name]["rows"] == 10**7]
    assert large
    for name in large:
        peaks = [stage["peak"] for stage in RECORDED[name]["stages"].values()]
        assert max(peak["workers"] for peak in peaks) < 0.5e9  # the data have 2 GB
        assert max(peak["client"] for peak in peaks) < 0.3e9


@pytest.mark.parametrize("name", cluster_model.FITS)
def test_more_workers_are_not_slower_and_hold_less(name):
    cluster, data = hundred_workers(CONSTANTS), Data(10**8, 512, 2**16)
    larger = replace(cluster, workers=200, per_task=cluster.per_task)
    for few, many in zip(
        *(cluster_model.FITS[name](data, c) for c in (cluster, larger)), strict=True
    ):
        assert many.memory(larger) <= few.memory(cluster) * 1.01
        assert many.seconds(larger) <= few.seconds(cluster) * 1.05


def test_the_scheduler_keeps_the_tasks_of_all_rounds():
    cluster, data = hundred_workers(CONSTANTS), Data(10**9, 512, 2**16)
    few, many = (cluster_model.refinement(data, cluster, rounds=r)[0] for r in (10, 50))
    assert many.scheduler() == 5 * few.scheduler() == many.rounds * many.tasks * 3000
    assert many.client() == few.client()  # which has those of one round
    for stages in (cluster_model.eigenpairs, cluster_model.isomap, cluster_model.refinement):
        stage = stages(data, cluster)[0]
        assert stage.scheduler() > 10 * stage.client()
        assert stage.strain(cluster)["memory of the scheduler"] > 0.5


def test_what_breaks_first_is_said():
    cluster = hundred_workers(CONSTANTS)
    small = replace(cluster, memory=2**30)
    assert cluster_model.largest(small, 512)[1] == "memory of workers"
    busy = replace(cluster, scheduler_memory=2**30)
    assert cluster_model.largest(busy, 512, name="PCA")[1] == "memory of the scheduler"
    slow = replace(cluster, per_task=1.0)
    stage = cluster_model.FITS["PCA"](Data(10**9, 512, 2**16), slow)[0]
    assert max(stage.times(slow), key=stage.times(slow).get) == "scheduler"
    assert len(page.breaks_list(cluster)) == 2 + len(cluster_model.FITS)
