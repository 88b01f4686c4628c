"""The report: facts against data made with known faults, the page, and the recipe."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manifoldry
from manifoldry.affinity import SelfTuning
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.io import DataFileError, Table, read_table
from manifoldry.reporting import drawing, read_data
from manifoldry.reporting.python_code import PythonCode

EVIL = "</script><img src=x onerror=alert(1)>&\"'"
VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """The elements of a page, and whether they are nested properly."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def drawn(text):
    """What the script draws."""
    found = re.search(r'<script type="application/json" id="drawing">(.*?)</script>', text)
    return json.loads(found[1], parse_constant=pytest.fail)


def made(data, folder, **options):
    """A report by a fast method without refits, and its page."""
    options = {"methods": ["pca"], "n_refits": 0} | options
    report = manifoldry.report(data, folder / "report.html", **options)
    return report.results, report.path.read_text(encoding="utf-8")


def faulty():
    """Two clusters with 3 missing values, 2 repeated rows, an outlier, a constant column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    X[60:, 0] += 100
    X[7], X[9] = X[3], X[3]
    X[50, 1] = 40
    X[:, 4] = 2.5
    X[[1, 2, 70], [1, 1, 3]] = np.nan
    return X


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "faulty.csv"
    lines = ["id,a,b,c,d,e,kind"]
    for i, row in enumerate(faulty()):
        cells = ["" if np.isnan(v) else repr(float(v)) for v in row]
        lines.append(",".join([f"r{i}", *cells, "left" if i < 60 else "right"]))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def usual(csv, tmp_path_factory):
    """The report on the faulty file with usual options, but fewer methods and refits."""
    path = tmp_path_factory.mktemp("report") / "faulty.html"
    methods = ["pca", "laplacian-eigenmaps", "isomap"]
    report = manifoldry.report(csv, path, methods=methods, scale=False, n_refits=2)
    return report, path.read_text(encoding="utf-8")


def test_facts_are_those_of_the_data(usual):
    facts = usual[0].results.facts
    assert (facts.n_rows, facts.n_columns, facts.n_examined) == (120, 5, 120)
    assert facts.missing.n_cells == facts.missing.n_rows == 3
    assert facts.missing.columns == (("b", 2), ("d", 1))
    assert facts.missing.rows == (1, 2, 70)
    assert facts.n_duplicates == 2
    assert facts.duplicates == ((7, 3), (9, 3))
    assert facts.constant == ("e",)
    assert facts.dominant[0] == "a"
    assert facts.dominant[1] > 0.9
    kinds = facts.labels[0]
    assert (kinds.name, kinds.n_values, kinds.n_missing) == ("kind", 2, 0)
    assert dict(kinds.most_frequent) == {"left": 60, "right": 60}


def test_connectivity_is_that_of_the_data(usual):
    graph = usual[0].results.graph
    assert graph.sizes == (60, 60)
    assert graph.outlying[0][0] == 50
    X = np.where(np.isnan(faulty()), np.nanmedian(faulty(), axis=0), faulty())
    neighbors = manifoldry.NeighborGraph.build(X, n_neighbors=10)
    popularity = np.bincount(neighbors.indices, minlength=120)
    assert graph.hub == (popularity.argmax(), popularity.max())
    assert graph.n_unpopular == (popularity == 0).sum()


def test_missing_values_are_filled_in_as_asked(csv, tmp_path):
    found, text = made(csv, tmp_path, impute="mean", scale=False)
    X = np.where(np.isnan(faulty()), np.nanmean(faulty(), axis=0), faulty())
    with ignoring(ManifoldryWarning):  # about the outlier
        expected = manifoldry.PCA(2, random_state=0).fit_transform(X)
    np.testing.assert_allclose(found.maps[0].embedding, expected, atol=1e-9)
    assert "the maps have the mean of the column there" in Page(text).text
    assert "--impute mean" in found.recipe.command(found.chosen)
    assert not made(np.random.default_rng(0).normal(size=(20, 3)), tmp_path)[0].recipe.steps


def test_small_parts_are_named(tmp_path):
    X = np.random.default_rng(0).normal(size=(1100, 3))
    X[:11] += 500
    found, text = made(X, tmp_path)
    assert found.graph.sizes == (1089, 11)
    assert found.graph.separate == tuple(range(11))
    assert "in 2 separate parts; they have 1,089, 11 rows" in Page(text).text


def test_columns_of_other_units_are_standardized(csv, tmp_path):
    options = {"methods": ["pca"], "n_refits": 0}
    found = manifoldry.report(csv, tmp_path / "a.html", **options)
    scaled = manifoldry.report(csv, tmp_path / "b.html", scale=True, **options)
    kept = manifoldry.report(csv, tmp_path / "c.html", scale=False, **options)
    assert np.array_equal(found.results.maps[0].embedding, scaled.results.maps[0].embedding)
    assert any("so columns are standardized" in note for note in found.results.notes)
    assert "--scale" in found.results.recipe.command(found.results.maps[0])
    assert "--no-scale" in kept.results.recipe.command(kept.results.maps[0])
    assert not kept.results.recipe.is_scaled


def test_scales_are_judged_from_the_variance(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    assert "columns have similar scales" in made(X, tmp_path)[1]
    uneven = X * [1e3, 1e3, 1, 1]
    assert made(uneven, tmp_path)[0].facts.has_uneven_scales
    dominated, text = made(X * [1e3, 1, 1, 1], tmp_path)
    assert dominated.facts.has_dominant_column
    assert "Column column 1 has 100.0% of the variance" in text
    assert dominated.verdict.headline.startswith("Column column 1 has 100.0% of the variance")
    scaled, text = made(X * [1e3, 1, 1, 1], tmp_path, scale=True)
    assert "column 1" not in scaled.verdict.headline


def test_missing_values_do_not_add_variance(tmp_path):
    """Of a column far from 0; and the maps are made as the headline says, with gaps in all rows."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    X[:, 0] += 2000
    X[::3, 0] = np.nan
    found, _ = made(Table(X, ("year", "b", "c")), tmp_path)
    part = np.nanvar(X, axis=0) / np.nanvar(X, axis=0).sum()
    assert found.facts.dominant[1] == pytest.approx(part.max())
    assert not found.recipe.is_scaled
    assert found.verdict.headline.startswith("Use the PCA map")
    X[1::3, 1] = X[2::3, 2] = np.nan
    found, _ = made(Table(X * [1e3, 1, 1], ("income", "b", "c")), tmp_path)
    assert found.facts.has_dominant_column
    assert found.recipe.is_scaled


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_missing_values_of_a_sparse_matrix_are_filled_in(tmp_path, kind):
    X = np.random.default_rng(0).poisson(1.0, size=(40, 4)).astype(float)
    X[[3, 3, 9], [1, 2, 2]] = np.nan
    report = manifoldry.report(kind(X), tmp_path / "a.html", methods=["pca"], n_refits=0)
    missing = report.results.facts.missing
    assert (missing.n_cells, missing.n_rows, missing.rows) == (3, 2, (3, 9))
    assert missing.columns == (("column 3", 2), ("column 2", 1))
    assert report.results.recipe.impute == "median"
    assert_repeats(report, kind(X))


def test_the_page_is_whole_and_needs_nothing_else(usual):
    page = Page(usual[1])
    assert not page.open
    assert len(page.all("h1")) == 1
    sections = [attrs["id"] for attrs in page.all("section")]
    assert sections == ["verdict", "data", "structure", "maps", "quality", "trust", "advice",
                        "repeat"]  # fmt: skip
    linked = [attrs["href"] for attrs in page.all("a")]
    assert {f"#{each}" for each in sections} <= set(linked)
    assert all(link.startswith("#") for link in linked)
    assert not any("src" in attrs for _, attrs in page.elements)
    assert not re.search(r"https?://|@import|url\(", usual[1])
    policy = next(a for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy["content"]


def test_the_page_is_accessible(usual):
    page = Page(usual[1])
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("canvas")) == 3
    assert all("rows by" in canvas["aria-label"] for canvas in page.all("canvas"))
    assert len(page.all("caption")) == len(page.all("table")) > 3
    assert all(attrs["scope"] in ("row", "col") for attrs in page.all("th"))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(set(ids)) == len(ids)


def test_the_page_says_what_was_found(usual):
    report, text = usual
    page = Page(text).text
    assert report.results.verdict.headline in page
    for sentence in (*report.results.verdict.cautions, *report.results.advice):
        assert sentence in page
    assert "3 values are missing (0.5%), in 3 rows and 2 columns" in page
    assert "row 8 (r7) repeats row 4 (r3)" in page
    assert "in 2 separate parts; they have 60, 60 rows" in page
    assert "per_point" not in page  # a hint for Python
    assert "Coordinate 2 shows little but row 51 (r50), with" in page
    assert report.results.verdict.headline in str(report)


def test_numbers_are_those_of_the_metrics(usual):
    report = usual[0]
    X = read_table(report.results.recipe.source.arguments[0], missing=True).X
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    labels = report.results.labels["kind"]
    isomap = next(each for each in report.results.maps if each.name == "Isomap")
    with ignoring(ManifoldryWarning):  # about two parts, and the outlier
        model = manifoldry.Isomap(2, random_state=0).fit(X)
    expected = manifoldry.assess(X, model, labels, random_state=0)
    assert isomap.metrics == expected.metrics
    np.testing.assert_array_equal(isomap.trust, expected.per_point["trustworthiness"])
    assert f"{expected.metrics['rnx_area']:.2f}" in Page(usual[1]).text
    region = report.results.regions["Isomap"]
    assert np.isclose(region.trust, isomap.trust[list(region.rows)].mean())


def test_the_drawing_has_the_maps_turned_to_match_the_first(usual):
    report, text = usual
    data = drawn(text)
    assert data["rows"] == [f"r{i}" for i in range(120)]
    assert [each["name"] for each in data["maps"]] == [m.name for m in report.results.drawn_maps]
    assert data["maps"][0]["name"] == report.results.verdict.name
    kinds = data["colorings"][0]
    assert [kinds["classes"][code]["name"] for code in kinds["codes"]] == ["left"] * 60 + [
        "right"
    ] * 60
    for each, found in zip(data["maps"], report.results.drawn_maps, strict=True):
        place = np.column_stack([each["x"], each["y"]]).astype(float)
        assert 0 <= place.min() <= place.max() <= 9999
        assert manifoldry.metrics.procrustes(found.embedding, place).error < 0.01
    first = next(m for m in report.results.maps if m.name == "PCA")
    np.testing.assert_allclose(first.aligned, first.embedding, atol=1e-9)


def test_rows_are_counted_from_zero_in_the_summary_and_from_one_on_the_page(usual):
    report, text = usual
    summary = report.summary
    assert summary["data"]["duplicates"][0] == (7, 3)
    assert summary["connectivity"]["outlying"][0][0] == 50
    isomap = next(each for each in report.results.maps if each.name == "Isomap")
    rows = summary["maps"]["Isomap"]["least_trustworthy_rows"]
    np.testing.assert_array_equal(isomap.trust[rows], np.sort(isomap.trust)[:10])
    page = Page(text).text
    assert f"row {rows[0] + 1} (r{rows[0]})" in page
    assert "rows passed to fit" not in page
    assert "of the fit; mapped rows and coordinates are counted from 0 there" in page
    numbered = re.findall(r"row (\d+) \(r(\d+)\)", page)
    assert {int(number) - int(name) for number, name in numbered} == {1}


def test_names_cannot_become_html(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[4] = X[2]
    X[5] = 1e3
    X[6, 0] = np.nan
    ids = np.array([f"{EVIL}{i}" for i in range(30)])
    labels = {EVIL: np.array([f"{EVIL}\ud800\x00{i % 3}" for i in range(30)])}
    table = Table(X, (EVIL, "b", "c"), ids, labels, (f"note {EVIL}",))
    found, text = made(table, tmp_path, methods=["pca", Failing()])
    page = Page(text)
    assert not page.open
    assert not page.all("img")
    assert len(page.all("script")) == 2
    data = drawn(text)
    assert data["rows"] == [str(each) for each in ids]
    assert data["colorings"][0]["name"] == EVIL
    assert page.text.count(EVIL) > 5
    assert found.facts.missing.columns == ((EVIL, 1),)


class Failing(TruncatedSVD):
    """A method that fails with a message that is HTML."""

    def fit_transform(self, X, y=None):
        raise ValueError(f"no map today {EVIL}")


def test_a_file_name_cannot_become_html(tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.csv"
    np.savetxt(path, np.random.default_rng(0).normal(size=(20, 3)), delimiter=",")
    text = made(path, tmp_path)[1]
    assert not Page(text).all("img")
    assert "<img src=x onerror=alert(1)>.csv" in Page(text).text


def test_a_method_that_fails_is_reported(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    found, text = made(X, tmp_path, methods=[Failing(), "pca", "hessian-lle"])
    assert found.maps[0].error.startswith("no map today")
    assert found.verdict.name
    assert "This method failed: no map today" in Page(text).text
    none, text = made(X, tmp_path, methods=[Failing()])
    assert none.verdict.name == ""
    assert "No method could make a map" in Page(text).text
    assert none.summary()["repeat"] is None
    assert drawn(text)["maps"] == []


def test_the_code_makes_the_same_map(csv, tmp_path, monkeypatch):
    monkeypatch.chdir(csv.parent)
    report = manifoldry.report(
        "faulty.csv", tmp_path / "a.html", methods=["isomap"], scale=True, pca=3, n_refits=0
    )
    assert_repeats(report)
    names = report.results.recipe.code(report.results.chosen)
    assert "SimpleImputer(" in names
    assert "StandardScaler()" in names


def test_the_code_makes_the_same_map_of_data_in_memory(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X = np.abs(np.random.default_rng(0).normal(size=(60, 4)))
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=np.arange(60) % 3, text="x")
    arrays = X, X.astype(np.float32), (9 * X).astype(np.int8), X.tolist()
    frames = frame, pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    for data in (*arrays, sparse.coo_array(X), Table(X), *frames):
        options = {"labels": "kind"} if any(data is each for each in frames) else {}
        report = manifoldry.report(
            data, tmp_path / "a.html", methods=["pca"], log1p=True, max_rows=50, n_refits=0,
            **options,
        )  # fmt: skip
        assert report.results.recipe.sampled == 50
        assert_repeats(report, data)
    assert set(report.results.labels) == {"kind"}


def test_the_code_names_estimators_that_were_passed(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    given = [manifoldry.NonRedundant(manifoldry.LaplacianEigenmaps(n_neighbors=6)),
             TruncatedSVD(2, random_state=1)]  # fmt: skip
    given += [
        manifoldry.LaplacianEigenmaps(n_neighbors=6, affinity=SelfTuning(4)),
        make_pipeline(StandardScaler(), manifoldry.ClassicalMDS()),
        FunctionTransformer(np.sqrt, kw_args={"where": True, "dtype": None}, inverse_func=np.square,
                            feature_names_out="one-to-one", check_inverse=False),
    ]  # fmt: skip
    for estimator in given:
        report = manifoldry.report(X**2, tmp_path / "a.html", methods=[estimator], n_refits=0)
        assert_repeats(report, X**2)
        assert report.results.recipe.command(report.results.chosen) is None


def test_the_code_tells_classes_of_the_same_name_apart(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    report = manifoldry.report(X, tmp_path / "a.html", methods=["pca"], pca=3, n_refits=0)
    assert_repeats(report, X)


class Shifted(TruncatedSVD):
    """An estimator with a parameter of any kind."""

    def __init__(self, shift=None, n_components=2):
        super().__init__(n_components, random_state=0)
        self.shift = shift


@pytest.mark.parametrize("shift", [np.arange(2000.0), np.ones(2), np.max, [1, {"a": np.ones}], int])
def test_an_estimator_that_cannot_be_written_is_the_one_that_was_passed(tmp_path, shift):
    X = np.random.default_rng(0).normal(size=(40, 4))
    report = manifoldry.report(X, tmp_path / "a.html", methods=[Shifted(shift)], scale=True,
                               n_refits=0)  # fmt: skip
    code = report.results.recipe.code(report.results.chosen)
    assert "# estimator is what was passed to report" in code
    assert "Shifted" not in code
    assert_repeats(report, X, estimator=Shifted(shift))


VALUES = [None, True, 3, 0.1, float("inf"), "a\nb'", (1,), (), [1, (2, 3)], {"a": [None]},
          np.float32(0.1), np.int8(3), np.bool_(True), np.log1p, list(range(100)),
          SelfTuning(4), Shifted([1] * 50)]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_code_gives_the_same_value(value):
    code = PythonCode()
    text = code.of(value)
    names = {}
    exec("\n".join(code.imports), names)
    again = eval(text, names)
    assert type(again) is type(value)
    assert repr(again) == repr(value)


def test_a_map_is_judged_by_the_metric_of_its_estimator(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = manifoldry.Isomap(n_neighbors=8, metric="cityblock")
    found, page = made(X, tmp_path, methods=[model, "pca"])
    own = manifoldry.assess(X, model.fit(X), metric="cityblock", random_state=0).metrics
    assert found.maps[0].metrics == pytest.approx(dict(own))
    assert found.notes == ("the map of Isomap is judged by its own metric, cityblock",)
    assert found.notes[0] in page


def assert_repeats(report, data=None, **given):
    """The code on the page, executed, gives the map of the report."""
    chosen = report.results.chosen
    names = {"data": data, **given}
    code = report.results.recipe.code(chosen)
    exec(code, names)
    np.testing.assert_array_equal(names["embedding"], chosen.embedding)
    assert " ".join(code.split()) in Page(report.path.read_text(encoding="utf-8")).text


def test_of_many_rows_a_stated_sample_is_mapped_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "MOST_DRAWN", 40)
    monkeypatch.setattr("manifoldry.reporting.page_maps.MOST_DRAWN", 40)
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[5, 0] = np.nan
    found, text = made(X, tmp_path, max_rows=100, labels=np.arange(300) % 7)
    assert (found.facts.n_rows, found.facts.n_examined) == (300, 100)
    assert found.facts.missing.rows == (5,)  # of all rows
    data = drawn(text)
    assert len(data["rows"]) == len(data["maps"][0]["x"]) == 40
    numbers = np.array([int(name.split()[1]) - 1 for name in data["rows"]])
    assert set(numbers) <= set(found.rows)
    colors = data["colorings"][0]
    drawn_labels = [int(colors["classes"][code]["name"]) for code in colors["codes"]]
    assert drawn_labels == (numbers % 7).tolist()
    trust = dict(zip(found.rows, found.maps[0].trust, strict=True))
    expected = [trust[number] for number in numbers]
    np.testing.assert_allclose(data["maps"][0]["trust"], expected, atol=0.0051)
    page = Page(text).text
    assert "40 of 100 rows, chosen at random, are drawn" in page
    assert "based on 100 rows, chosen at random" in page


def test_labels_of_every_kind_can_be_colors(tmp_path):
    n = 60
    X = np.random.default_rng(0).normal(size=(n, 3))
    values = np.linspace(0, 1, n)
    values[[3, 4]] = np.nan, np.inf
    labels = {
        "few": np.array(["a", "b", "", "c"] * 15),
        "many": np.array([f"class {i}" for i in range(n)]),
        "value": values,
        "none": np.array([None, "x", "y"] * 20, dtype=object),
        "true": np.arange(n) % 2 == 0,
    }
    colorings = {each["name"]: each for each in drawn(made(Table(X, labels=labels), tmp_path)[1])[
        "colorings"]}  # fmt: skip
    assert [each["name"] for each in colorings["few"]["classes"]] == ["(empty)", "a", "b", "c"]
    assert len(colorings["many"]["classes"]) == n
    assert colorings["value"]["values"][3] is colorings["value"]["values"][4] is None
    assert (colorings["value"]["low"], colorings["value"]["high"]) == (0.0, 1.0)
    assert [each["name"] for each in colorings["none"]["classes"]] == ["x", "y", "missing"]
    assert {each["name"] for each in colorings["true"]["classes"]} == {"False", "True"}


def test_labels_that_are_missing_or_no_classes_are_said(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    missing = np.array([None, *"ab" * 14, "a"], dtype=object)
    found, _ = made(X, tmp_path, labels=missing)
    assert found.facts.labels[0].n_missing == 1
    assert "some labels are missing" in found.notes[-1]
    assert "label_accuracy" not in found.maps[0].metrics
    assert "30 different values" in made(X, tmp_path, labels=np.arange(30))[0].notes[-1]


def test_one_or_three_coordinates(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    for count in (1, 3):
        found, text = made(X, tmp_path, n_components=count)
        assert found.maps[0].embedding.shape == (40, count)
        assert len(set(drawn(text)["maps"][0]["y"])) == (1 if count == 1 else 40)
    assert "The first 2 of 3 coordinates" in text


def test_redundant_eigenmaps_are_mapped_without_redundancy_too(tmp_path):
    strip = np.random.default_rng(0).uniform(size=(200, 2)) * [10, 1]
    X = np.column_stack([strip, 0.1 * np.sin(strip[:, 0])])
    usual = manifoldry.report(X, tmp_path / "a.html", n_refits=0)
    names = [each.name for each in usual.results.maps]
    assert names == ["PCA", "Laplacian eigenmaps", "Isomap", "t-SNE", "Non-redundant eigenmaps"]
    assert usual.results.maps[1].redundancy[1] < 0.3 < usual.results.maps[4].redundancy[1]
    assert usual.results.verdict.name != "Laplacian eigenmaps"


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (np.ones((5, 3)), {}, ValueError, "5 rows; a report needs at least 10"),
        (np.full((20, 2), [1, np.nan]), {}, DataFileError, "'column 2' has no value in any row"),
        (sparse.csr_array(np.full((20, 2), [1, np.nan])), {}, DataFileError, "'column 2' has no"),
        (np.full((20, 2), np.inf), {}, DataFileError, "is infinite"),
        (np.eye(20), {"methods": ["isomop"]}, ValueError, "did you mean isomap?"),
        (np.eye(20), {"methods": []}, ValueError, "methods is empty"),
        (np.eye(20), {"methods": [3]}, TypeError, "pass names of methods"),
        (np.eye(20), {"labels": ["a"]}, ValueError, r"shape \(1,\), expected \(20,\)"),
        (np.eye(20), {"labels": "kind"}, ValueError, "an array has no names of columns"),
        (np.array([["a", "b"]] * 20), {}, ValueError, "pass rows of numbers"),
        (np.eye(20), {"random_state": None}, ValueError, "random_state=None must be an integer"),
        (np.eye(20), {"impute": "mode"}, ValueError, "impute='mode'"),
        (np.eye(20), {"max_rows": 5}, ValueError, "max_rows=5"),
        (np.eye(20), {"n_refits": -1}, ValueError, "n_refits=-1"),
        (np.eye(20), {"n_components": 0}, ValueError, "n_components=0"),
        (np.ones((4, 5, 6)), {}, ValueError, "stack of 4 arrays"),
        ("nowhere.csv", {}, FileNotFoundError, "no file nowhere.csv"),
    ],
)
def test_what_cannot_be_reported_is_refused(tmp_path, data, options, error, message):
    with pytest.raises(error, match=message):
        made(data, tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_a_previous_report_survives_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        manifoldry.report(np.eye(20), tmp_path / "none" / "report.html")
    monkeypatch.setattr("manifoldry.reporting.page.page", lambda results: "\ud800")
    with pytest.raises(UnicodeEncodeError):
        made(np.random.default_rng(0).normal(size=(20, 3)), tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "before"


def test_constant_and_repeated_data_are_reported(tmp_path):
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), 20, axis=0)
    X[:, 2] = 0
    found, text = made(X, tmp_path)
    assert found.facts.n_duplicates == 38
    assert found.facts.constant == ("column 3",)
    drawn(text)


def test_read_data_reads_what_report_does(csv):
    table = read_data(csv)
    assert table.names == tuple("abcde")
    assert list(read_data(str(csv), "kind").labels) == ["kind"]
    np.testing.assert_array_equal(read_data(table).X, faulty())
