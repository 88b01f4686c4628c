"""Maps in files: their columns and rows, and the metric by which they are judged."""

import json

import numpy as np
import pytest

import manifoldry
from manifoldry.io import read_table

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
X = np.random.default_rng(0).normal(size=(40, 4))
DIGIT = np.arange(40) % 4 + 10 * (X[:, 0] > 0)
NAMES = [f"row{i}" for i in range(40)]
EMBED = "embed", "data.csv", "-m", "pca", "--label", "digit", "--no-picture", "-o", "map.csv"
ASSESS = "assess", "data.csv", "map.csv", "--label", "digit"


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))


def write_data(folder, names=NAMES):
    rows = ((name, *row, digit) for name, row, digit in zip(names, X.tolist(), DIGIT, strict=True))
    write(folder / "data.csv", "id,a,b,c,d,digit", rows)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with data whose labels are numbers."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    return tmp_path


def metrics(run, *arguments):
    return json.loads(run(*arguments, "--json")[0])["metrics"]


def expected(embedding, **options):
    found = manifoldry.assess(X, embedding, DIGIT, random_state=0, **options)
    return pytest.approx({name: float(value) for name, value in found.metrics.items()})


def test_labels_and_novelty_in_a_map_are_no_coordinates(run):
    run(*EMBED)
    pca = manifoldry.PCA(2).fit_transform(X)
    _, err = run(*ASSESS)
    assert "map.csv: the coordinates are 'pca0', 'pca1'" in err
    assert metrics(run, *ASSESS) == expected(pca)
    run("transform", "map.model", "data.csv", "--label", "digit", "-o", "map.csv")
    assert metrics(run, *ASSESS) == expected(pca)
    compared = metrics(run, "compare", "data.csv", "-m", "pca", "--map", "map.csv", "--label",
                       "digit", "--no-picture")  # fmt: skip
    for name, value in compared["map"].items():
        assert compared["pca"][name] == pytest.approx(value, abs=1e-9)


def test_columns_of_a_map_from_elsewhere(run, folder):
    rows = zip(NAMES, X[:, 0], X[:, 1], X[:, 2], DIGIT, X[:, 3], strict=True)
    write(folder / "map.csv", 'id,u,v,"w,1",digit,novelty', rows)
    assert metrics(run, *ASSESS) == expected(X[:, :3])
    for columns in ["--map-columns", "v,u"], ["--map-columns", "v", "--map-columns", "u"]:
        assert metrics(run, *ASSESS, *columns) == expected(X[:, [1, 0]])
    assert metrics(run, *ASSESS, "--map-columns", 'v, "w,1"') == expected(X[:, 1:3])
    assert (
        "map.csv: the coordinates are 'u' to 'novelty'"
        in run(*ASSESS, "--map-columns", 'u,v,"w,1",digit,novelty')[1]
    )
    assert "did you mean 'v'?" in run(*ASSESS, "--map-columns", "vv", code=1)[1][-1]
    write(folder / "map.csv", "pca0,tsne0,tsne1", X[:, :3])
    assert "columns of several maps (pca0, tsne0)" in run(*ASSESS, code=1)[1][-1]
    write(folder / "map.csv", "digit,novelty", X[:, :2])
    assert "has no coordinates, only digit, novelty" in run(*ASSESS, code=1)[1][-1]


def test_points_that_were_not_embedded_are_left_out(run, folder):
    Y = X[:, :2].copy()
    Y[3] = np.nan
    write(folder / "map.csv", "u,v", np.where(np.isnan(Y), "", Y.astype(str)))
    assert metrics(run, *ASSESS) == expected(Y)


def test_rows_are_matched_by_names_or_refused(run, folder):
    """Also names that a spreadsheet would run, which have an apostrophe in our files."""
    order = np.random.default_rng(1).permutation(40)
    write_data(folder, [f"-{name}" for name in NAMES])
    run(*EMBED)
    assert read_table("map.csv").ids[0] == "'-row0"
    lines = (folder / "map.csv").read_text().splitlines()
    (folder / "map.csv").write_text("\n".join([lines[0], *(lines[1 + i] for i in order)]))
    pca = manifoldry.PCA(2).fit_transform(X)
    assert metrics(run, *ASSESS) == expected(pca)
    text = (folder / "map.csv").read_text().replace("'-row7\"", 'other"')
    (folder / "map.csv").write_text(text)
    _, err = run(*ASSESS, code=1)
    assert "row 8 of the data, '-row7', is not in map.csv" in err[-1]
    assert metrics(run, *ASSESS, "--in-order") == expected(pca[order])


def test_names_that_repeat(run, folder):
    names = [f"group {i % 7}" for i in range(40)]
    write_data(folder, names)
    text = (folder / "data.csv").read_text()
    (folder / "data.csv").write_text(text.replace("id,", "group,", 1))  # "id" in the map
    run(*EMBED, "--id", "group")
    assert metrics(run, *ASSESS, "--id", "group") == expected(manifoldry.PCA(2).fit_transform(X))
    lines = (folder / "map.csv").read_text().splitlines()
    (folder / "map.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    _, err = run(*ASSESS, "--id", "group", code=1)
    assert "names of rows repeat in the data and are in another order" in err[-1]


def test_a_map_is_judged_by_the_metric_of_its_method(run):
    method = "-m", "isomap", "--set", "metric=cityblock", "--label", "digit", "--no-picture"
    own = metrics(run, "embed", "data.csv", *method, "-o", "map.csv")
    own.pop("unpredictability")  # which needs the estimator
    assert own == metrics(run, *ASSESS, "--metric", "cityblock")
    assert own != metrics(run, *ASSESS)
    out, err = run("compare", "data.csv", *method, "-m", "pca", "--json")
    assert "maps are compared by the metric of the methods, cityblock" in err
    compared = json.loads(out)["metrics"]["isomap"]
    assert compared["trustworthiness"] == own["trustworthiness"]
    several = "compare", "data.csv", *method[:2], "-m", "ltsa", "--set", "ltsa.metric=cityblock"
    assert any("metrics of the methods differ (isomap: euclidean, ltsa: cityblock)" in line
               for line in run(*several, "--no-picture")[1])  # fmt: skip
    given = metrics(run, "compare", "data.csv", *method, "--metric", "euclidean")["isomap"]
    assert given["trustworthiness"] == metrics(run, *ASSESS)["trustworthiness"]


def test_the_metric_of_a_nested_estimator():
    from manifoldry.methods.choice import metric_of

    nested = manifoldry.NonRedundant(manifoldry.LaplacianEigenmaps(metric="cityblock"))
    assert metric_of(nested) == "cityblock"
    assert metric_of(manifoldry.PCA()) == "euclidean"


def test_distances_are_not_standardized_to_assess_a_map(run, folder):
    from sklearn.metrics import pairwise_distances

    D = pairwise_distances(X * [1000, 1, 1, 1])
    write(folder / "distances.csv", ",".join(f"x{i}" for i in range(40)), D)
    write(folder / "map.csv", "u,v", X[:, :2])
    found = metrics(run, "assess", "distances.csv", "map.csv", "--metric", "precomputed")
    plain = manifoldry.assess(D, X[:, :2], metric="precomputed", random_state=0).metrics
    assert found == pytest.approx({name: float(value) for name, value in plain.items()})
    _, err = run("assess", "distances.csv", "map.csv", "--metric", "precomputed", "--scale", code=2)
    assert "--scale cannot be applied to distances" in err[-1]


def judged(lines):
    return [line for line in lines if "judged by the data" in line]


def test_maps_are_judged_by_the_data_that_they_show(run, folder):
    assert judged(run(*EMBED, "--pca", "3", "--scale")[1]) == []
    as_they_are, warning = judged(run(*ASSESS)[1])
    assert as_they_are == "the map is judged by the data as they are"
    assert warning == (
        "manifoldry: warning: map.csv is a map of the data after --scale --pca 3, as map.run.toml "
        "says, but is judged by the data as they are, so the values are not about what it shows; "
        "pass --scale --pca 3"
    )
    same = "the map is judged by the data after --scale --pca 3"
    assert judged(run(*ASSESS, "--scale", "--pca", "3")[1]) == [same]
    compare = "compare", "data.csv", "--label", "digit", "--map", "map.csv", "--no-picture"
    assert judged(run(*compare)[1]) == [as_they_are, warning]
    assert judged(run("compare", "data.csv", "-m", "pca", "--no-picture")[1]) == []


@pytest.mark.parametrize(
    ("made", "judging", "remedy"),
    [
        ([], ["--scale"], "pass --no-scale"),
        ([], ["--pca", "2"], "leave out --pca 2"),
        (["--impute", "mean"], ["--impute", "median"], "pass --impute mean"),
        (["--pca", "3"], ["--scale", "--pca", "3"], "pass --pca 3 --no-scale"),
    ],
)
def test_options_that_judge_a_map_as_it_was_made(run, made, judging, remedy):
    run(*EMBED, *made)
    assert judged(run(*ASSESS, *judging)[1])[-1].endswith(f"what it shows; {remedy}")


def test_run_files_of_other_outputs_say_nothing_about_a_map(run, folder):
    run(*EMBED, "--scale")
    (folder / "map.run.toml").rename(folder / "map-embed.run.toml")
    assert len(judged(run(*ASSESS)[1])) == 2  # its name if a run file of another command was there
    (folder / "map.csv").rename(folder / "map.txt")
    assert len(judged(run("assess", "data.csv", "map.txt", "--label", "digit")[1])) == 1
