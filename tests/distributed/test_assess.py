"""Quality and dimension of distributed data, against the same computed in memory."""

import warnings

import numpy as np
import pytest

from manifoldry import PCA, assess, compare, estimate_dimension
from manifoldry.datasets import make_swiss_roll
from manifoldry.dimension.consensus import LOCAL_METHODS
from manifoldry.distributed import Rows, using_options
from manifoldry.distributed.samples import DisjointSamples
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import neighbor_preservation, trustworthiness
from manifoldry.metrics.distributed import neighbor_metrics
from manifoldry.metrics.pair import DataEmbeddingPair
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.ranks_among_all import ComparedPoints, rank_neighbors

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def roll():
    X, sheet = make_swiss_roll(2000, random_state=0)
    return X, X[:, [0, 2]] * [1, 0.2], sheet


def chunked(*arrays, rows=450):
    return [da.from_array(each, chunks=(rows, -1)) for each in arrays]


@pytest.fixture(params=["curved", "wide", "ties"])
def pair(request):
    """Data and embeddings of them; those with ties have rows that coincide, too."""
    rng = np.random.default_rng(0)
    if request.param == "ties":
        return rng.integers(0, 6, size=(500, 3)).astype(float), rng.integers(0, 9, size=(500, 2))
    X = make_swiss_roll(500, random_state=0).X if request.param == "curved" else None
    X = rng.normal(size=(500, 40)) + 1e3 if X is None else X
    return X, X[:, :2]


def ranks(X, Y, rows, *, chunk=130, k=7, metric="euclidean"):
    dX, dY = (Rows.read(each) for each in chunked(X, Y.astype(float), rows=chunk))
    points = ComparedPoints(rows, [X[rows], Y[rows].astype(float)], metric)
    [found] = rank_neighbors(dX, dY, points, k)
    return found


def test_ranks_among_all_rows_are_those_in_memory(pair):
    rows = np.array([0, 3, 129, 130, 131, 260, 499])
    in_memory = DataEmbeddingPair.of(*pair)
    of_embedding, of_data = ranks(*pair, rows)
    expected = NeighborRanks.of_embedding(in_memory, 7, rows)
    np.testing.assert_array_equal(of_embedding.ranks, expected.ranks)
    np.testing.assert_array_equal(of_data.ranks, NeighborRanks.of_data(in_memory, 7, rows).ranks)


def test_ranks_in_another_metric(pair):
    rows = np.arange(0, 500, 60)
    expected = NeighborRanks.of_embedding(DataEmbeddingPair.of(*pair, "cityblock"), 7, rows)
    np.testing.assert_array_equal(ranks(*pair, rows, metric="cityblock")[0].ranks, expected.ranks)


def test_ranks_of_blocks_shorter_than_the_neighborhood(pair):
    rows = np.array([1, 250])
    expected = ranks(*pair, rows)[0].ranks
    np.testing.assert_array_equal(ranks(*pair, rows, chunk=3)[0].ranks, expected)


def test_samples_are_disjoint_and_those_of_the_rows():
    rows = Rows.read(da.arange(1000, chunks=170)[:, None])
    samples = DisjointSamples.draw(1000, 200, np.random.default_rng(1))
    import dask

    values = np.concatenate(dask.compute(*samples.of(rows)))[:, 0]
    np.testing.assert_array_equal(values, np.concatenate(samples.groups))
    np.testing.assert_array_equal(np.sort(values), np.arange(1000))


@pytest.mark.parametrize(
    ("n", "size", "sizes"),
    [
        (21, 20, [21]),
        (5001, 5000, [5001]),
        (10_000, 5000, [10_000]),
        (10_001, 5000, [5000] * 2),
        (1000, 300, [300] * 3),
        (10**9, 100, [100] * 5),
    ],
)
def test_samples_are_not_smaller_than_asked(n, size, sizes):
    samples = DisjointSamples.draw(n, size, np.random.default_rng(0))
    assert [len(rows) for rows in samples.groups] == sizes


def test_intervals_have_the_values_in_memory(roll):
    X, Y, _ = roll
    exact = assess(X, Y)
    found = assess(*chunked(X, Y), sample=300, random_state=0)
    for name in ("trustworthiness", "continuity", "neighbor_preservation", "untrustworthy_points"):
        value = found.metrics[name]
        assert not value.exact
        assert value.low < exact.metrics[name] < value.high, name
    for name in ("distance_rank_correlation", "stress"):
        value, width = found.metrics[name], found.metrics[name].high - found.metrics[name].low
        assert 0 < width < 0.1
        assert abs(value - exact.metrics[name]) < width, name
    assert found.gains["neighbor_preservation"] < 0


def test_intervals_cover_the_values_of_all_rows(roll):
    """Of metrics among all rows, in nine of ten draws of 300 rows and more."""
    X, _, sheet = (each[:1000] for each in roll)
    Y, rng, k = sheet + [0.0, 3.0] * (sheet[:, :1] > 8), np.random.default_rng(0), 15
    everywhere = ranks(X, Y, np.arange(1000), chunk=250, k=k)
    exact = assess(X, Y, n_neighbors=k).metrics
    covered = {}
    for _ in range(200):
        rows = rng.choice(1000, 300, replace=False)
        drawn = [NeighborRanks(each.ranks[rows], rows, 1000) for each in everywhere]
        for name, value in neighbor_metrics(tuple(drawn), k).items():
            covered.setdefault(name, []).append(value.low <= exact[name] <= value.high)
    assert len(covered) == 4
    for name, hits in covered.items():
        assert np.mean(hits) >= 0.9, name


def test_metrics_of_neighborhoods_are_marked(roll):
    X, Y, sheet = roll
    found = assess(*chunked(X, Y), sheet[:, 0] > 8, sample=300)
    lines = str(found).splitlines()
    marked = {line.partition(":")[0] for line in lines if "within samples of 300 rows  " in line}
    among_all = {"trustworthiness", "untrustworthy_points", "continuity", "neighbor_preservation"}
    of_pairs = {"distance_rank_correlation", "stress"}
    assert marked == set(found.metrics) - among_all - of_pairs
    assert set(found.sampling.scopes(found.metrics)) == marked
    assert "Intervals of metrics within samples are for data of 300 rows" in str(found)
    assert "within samples" not in str(assess(X[:300], Y[:300]))


def test_what_was_sampled_is_printed(roll):
    X, Y, _ = roll
    text = str(assess(*chunked(X, Y), sample=300))
    assert text.startswith("Embedding of 2000 points in 2 coordinates; data: 3 features")
    assert "300 of 2000 rows, with their neighbors among all of them" in text
    assert "5 samples of 300 rows, with neighbors within a sample" in text
    assert "sample" not in str(assess(X[:300], Y[:300]))


def test_chunks_do_not_matter(roll):
    X, Y, _ = roll
    first = assess(*chunked(X, Y), sample=100, random_state=3)
    dX, dY = chunked(X, rows=600)[0], chunked(Y, rows=333)[0]
    again = assess(dX, dY, sample=100, random_state=3)
    assert again.metrics == first.metrics
    assert again.baseline == pytest.approx(first.baseline, abs=1e-12)


def test_few_rows_are_assessed_as_in_memory(roll):
    X, Y, _ = roll
    found, expected = assess(*chunked(X[:400], Y[:400], rows=90)), assess(X[:400], Y[:400])
    assert found.sampling is None
    assert found.metrics["trustworthiness"] == expected.metrics["trustworthiness"]
    assert found.metrics["trustworthiness"].exact


def test_an_estimator_that_was_fitted_to_distributed_data(roll):
    [X] = chunked(roll[0])
    with using_options(landmarks=300):
        model = PCA(2).fit(X)
    found = assess(X, model, sample=100, X_new=roll[0][:50] + 1000)
    assert found.is_pca
    assert "unpredictability" in found.metrics  # of ordered coordinates
    assert found.metrics["unlike_rows"] == 1


def test_an_embedding_in_memory_and_labels(roll):
    X, Y, sheet = roll
    labels = np.where(sheet[:, 0] > np.median(sheet[:, 0]), "outer", "inner")
    found = assess(chunked(X)[0], Y, labels, sample=300)
    distributed = assess(*chunked(X, Y), da.from_array(labels, chunks=700), sample=300)
    assert 0.5 < found.metrics["label_accuracy"] < found.metrics["label_accuracy_in_data"]
    assert distributed.metrics == found.metrics


def test_rare_labels_may_be_missing_in_samples(roll):
    X, Y, _ = roll
    labels = np.zeros(2000, dtype=int)
    labels[np.random.default_rng(0).choice(2000, 8, replace=False)] = 1
    few = "samples of 100 rows have a single label, so label accuracies are means over"
    with pytest.warns(ManifoldryWarning, match=few):
        found = assess(*chunked(X, Y), labels, sample=100)
    with pytest.warns(ManifoldryWarning, match=few):
        again = assess(*chunked(X, Y), da.from_array(labels, chunks=300), sample=100)
    assert found.metrics == again.metrics
    assert found.metrics["label_accuracy"] > 0.9
    assert found.largest_label > 0.98


@pytest.mark.parametrize("lazy", [True, False])
def test_without_rare_labels_in_any_sample_label_metrics_are_left_out(roll, lazy):
    X, Y, _ = roll
    drawn = np.concatenate(DisjointSamples.draw(2000, 100, np.random.default_rng(0)).groups)
    labels = np.array(["common"] * 2000)
    labels[np.setdiff1d(np.arange(2000), drawn)[0]] = "rare"
    labels = da.from_array(labels, chunks=300) if lazy else labels
    with pytest.warns(ManifoldryWarning, match=r"5 of 5 samples .* accuracies are left out"):
        found = assess(*chunked(X, Y), labels, sample=100)
    assert "label_accuracy" not in found.metrics
    assert "Labels" not in found.summary


@pytest.mark.parametrize("lazy", [True, False])
def test_missing_labels_are_found_in_all_rows(roll, lazy):
    X, Y, _ = roll
    labels = np.arange(2000) % 2.0
    labels[77] = np.nan
    labels = da.from_array(labels, chunks=300) if lazy else labels
    for seed in range(3):
        with pytest.raises(ValueError, match=r"labels are missing .None or NaN. for 1 of 2000"):
            assess(*chunked(X, Y), labels, sample=20, random_state=seed)


@pytest.mark.parametrize("lazy", [True, False])
def test_continuous_labels_are_refused(roll, lazy):
    X, Y, sheet = roll
    labels = da.from_array(sheet[:, 0], chunks=300) if lazy else sheet[:, 0]
    with pytest.raises(ValueError, match="bin continuous values first"):
        assess(*chunked(X, Y), labels, sample=50)


@pytest.fixture(scope="module")
def partly_embedded(roll):
    """Data, an embedding with rows of NaN, all of a chunk among them, and which rows are not."""
    X, _, sheet = roll
    Y = sheet.copy()
    out = np.concatenate([[0, 3], np.arange(900, 1350), [1999]])
    Y[out] = np.nan
    return X, Y, np.setdiff1d(np.arange(2000), out)


def test_rows_that_are_not_embedded_are_left_out(partly_embedded):
    X, Y, kept = partly_embedded
    labels = np.where(np.arange(2000) % 3, "a", "b")
    found = assess(*chunked(X, Y), labels, sample=100, random_state=4)
    chunks = (447 + 1, 450, 450, 199)  # the same rows, and thus the same samples
    X, Y, labels = X[kept], Y[kept], labels[kept]
    expected = assess(*(da.from_array(each, chunks=(chunks, -1)) for each in (X, Y)), labels,
                      sample=100, random_state=4)  # fmt: skip
    assert found.metrics == expected.metrics
    assert "Embedding of 1547 points" in str(found)
    assert "453 rows are not embedded (NaN) and left out" in str(found)
    assert "left out" not in str(expected)
    exact = assess(X, Y)
    for name in ("trustworthiness", "continuity", "neighbor_preservation"):
        value = found.metrics[name]
        assert value.low - 0.01 < exact.metrics[name] < value.high + 0.01, name


def test_few_rows_some_not_embedded_are_assessed_as_in_memory(partly_embedded):
    X, Y = (each[850:1400] for each in partly_embedded[:2])
    found, expected = assess(*chunked(X, Y, rows=90)), assess(X, Y)
    assert found.metrics["trustworthiness"] == expected.metrics["trustworthiness"]
    np.testing.assert_array_equal(found.embedding, expected.embedding)
    assert str(found) == str(expected)
    assert "450 rows are not embedded (NaN) and left out" in str(found)


def test_errors_name_rows_among_all(partly_embedded):
    X, Y, _ = partly_embedded
    Y = Y.copy()
    Y[500, 1] = np.nan
    with pytest.raises(ValueError, match=r"embedding contains NaN in chunk 1 \(row 500, column 1"):
        assess(*chunked(X, Y), sample=100)
    X = X.copy()
    X[1000, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN in chunk 2 \(row 1000, column 1"):
        assess(*chunked(X, partly_embedded[1]), sample=100)
    with pytest.raises(ValueError, match="3 of 2000 points are embedded"):
        assess(*chunked(X, np.where(np.arange(2000)[:, None] < 3, 1.0, np.nan)), sample=100)


def test_number_of_passes(roll):
    """Three over the data, and one more for an embedding that is computed from them."""
    X, Y, _ = roll
    reads = []

    def read(block):
        reads.append(len(block))
        return block

    counted = chunked(X)[0].map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    assess(counted, chunked(Y)[0], sample=50)
    assert sum(reads) == 3 * 2000
    reads.clear()
    assess(counted, counted[:, [0, 2]], sample=50)
    assert sum(reads) == 4 * 2000


def test_paths(roll, tmp_path):
    pytest.importorskip("zarr")
    X, Y, _ = roll
    for name, each in {"X": X, "Y": Y}.items():
        chunked(each)[0].to_zarr(str(tmp_path / f"{name}.zarr"))
    found = assess(str(tmp_path / "X.zarr"), tmp_path / "Y.zarr", sample=100)
    assert found.metrics == assess(*chunked(X, Y), sample=100).metrics


def test_workers(client, roll):
    X, Y, _ = roll
    found = assess(*chunked(X, Y), sample=100)
    report = estimate_dimension(chunked(X)[0], sample=100)
    with client.as_current(), warnings.catch_warnings():
        import dask

        with dask.config.set(scheduler="threads"):
            assert assess(*chunked(X, Y), sample=100).metrics == pytest.approx(found.metrics)
            again = estimate_dimension(chunked(X)[0], sample=100)
    assert float(report["two_nn"]) == pytest.approx(float(again["two_nn"]))


def test_rows_must_correspond(roll):
    X, Y = chunked(*roll[:2])
    with pytest.raises(ValueError, match="X has 2000 rows and the embedding has 1999"):
        assess(X, Y[:-1])
    with pytest.raises(ValueError, match="X has 2000 rows and the embedding has 10"):
        assess(X, roll[1][:10])


@pytest.mark.parametrize("wrong", ["X", "embedding"])
def test_nan_is_found_in_its_chunk(roll, wrong):
    arrays = {"X": roll[0].copy(), "embedding": roll[1].copy()}
    arrays[wrong][1000, 1] = np.nan
    with pytest.raises(ValueError, match=rf"{wrong} contains NaN in chunk 2 \(row 1000, column 1"):
        assess(*chunked(*arrays.values()), sample=100)


def test_what_cannot_be_assessed(roll):
    X, Y = chunked(*roll[:2])
    for embedding in (Y, PCA(2).fit(X)):
        with pytest.raises(
            TypeError, match=r"embedding is a Dask .*, but X is in memory; pass X as a"
        ):
            assess(roll[0], embedding)
    with pytest.raises(ValueError, match="needs a matrix in memory"):
        assess(X, Y, metric="precomputed")
    with pytest.raises(ValueError, match="sample=3 must be at least 20"):
        assess(X, Y, sample=3)
    with pytest.raises(TypeError, match="sample='all' must be a whole number"):
        assess(X, Y, sample="all")
    with pytest.raises(TypeError, match="X_new is a Dask collection"):
        assess(X, PCA(2).fit(roll[0]), X_new=X)


def test_other_functions_do_not_gather_collections(roll):
    X, Y = chunked(*roll[:2])
    from manifoldry.metrics import stability
    from manifoldry.plotting import plot_embedding

    gathered = "is a Dask Array, which would be gathered in memory; pass a random sample"
    for call in (
        lambda: trustworthiness(X, roll[1]),
        lambda: neighbor_preservation(roll[0], Y),
        lambda: compare(X, {"map": roll[1]}),
        lambda: stability(PCA(2), X),
        lambda: plot_embedding(Y),
    ):
        with pytest.raises(TypeError, match=gathered):
            call()


def test_dimension(roll):
    report = estimate_dimension(chunked(roll[0])[0], sample=400)
    assert report.dimension == 2
    value = report["maximum_likelihood"].value
    assert value.low < 2 < value.high + 0.2
    assert not value.exact
    text = str(report)
    assert text.startswith("Dimension of 2000 points of 3 features: about 2")
    assert "5 disjoint samples of 400 of 2000 rows" in " ".join(text.split())


def test_dimension_is_explained_from_all_samples():
    """The first sample differs from the others, so that its reasons are not those of all."""
    groups = DisjointSamples.draw(1000, 150, np.random.default_rng(0)).groups
    X = np.random.default_rng(1).uniform(size=(1000, 3))
    X[groups[0], 2] = 0  # a plane; the other samples fill the cube
    report = estimate_dimension(chunked(X)[0], sample=150)
    values = [float(report[name]) for name in LOCAL_METHODS]
    low, high = min(values), max(values)
    assert report.dimension == round(np.median(values)) == 3
    [said] = [reason for reason in report.reasons if "methods that use neighborhoods" in reason]
    assert f"{low:.2g} to {high:.2g}" in said or f"agree on {round(low)}" in said
    assert report.low <= report.dimension <= report.high
    assert "within samples of 150 rows" in report["two_nn"].note
    assert "intervals are for data of 150 rows" in report.reasons[-1]


def test_methods_that_some_samples_lack_are_named(roll):
    X = roll[0].copy()
    groups = DisjointSamples.draw(2000, 30, np.random.default_rng(0)).groups
    X[groups[1]] = np.indices((6, 5, 1)).reshape(3, -1).T  # a lattice
    report = estimate_dimension(chunked(X)[0], sample=30)
    in_memory = estimate_dimension(X[groups[1]])
    assert in_memory.skipped
    assert set(report.skipped) >= set(in_memory.skipped)
    assert set(report.estimates).isdisjoint(report.skipped)
    for method, why in in_memory.skipped.items():
        assert report.skipped[method].startswith(why[:20])
        assert "of 5 samples" in report.skipped[method]


def test_dimension_of_few_rows_is_that_in_memory(roll):
    X = roll[0][:300]
    found, expected = estimate_dimension(chunked(X, rows=77)[0]), estimate_dimension(X)
    assert found.sample_size is None
    assert found.dimension == expected.dimension
    assert found["correlation_dimension"].method == expected["correlation_dimension"].method


def test_warnings_of_workers_reach_the_caller_once(roll):
    X, _ = chunked(*roll[:2])
    wide = da.concatenate([X, X], axis=1)
    with pytest.warns(UserWarning, match="the embedding has 6 columns, more than the 3") as said:
        assess(X, wide, sample=50)
    assert len(said) == 1
