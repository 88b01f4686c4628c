"""Real worker processes, started once for the tests of a module that need them."""

import pytest


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of one thread each, on this machine only."""
    from distributed import LocalCluster

    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of the cluster, which tasks use while the test runs."""
    from distributed import Client

    with Client(cluster) as client:
        yield client
