"""``manifoldry explore``: maps of a file, of models, or of both, in a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.cli.inputs import check_output, output_path, read_digits, read_input
from manifoldry.cli.map_files import read_map
from manifoldry.cli.methods import settings_of_methods
from manifoldry.explorer.data import ExploredData, ImageStyle
from manifoldry.explorer.explore import add_map, data_of_maps, explored_data, title_of
from manifoldry.explorer.labels_file import LABEL_FORMATS
from manifoldry.explorer.serving import Address, check_installed, serve
from manifoldry.explorer.session import Session
from manifoldry.io import Table, load, read_info
from manifoldry.methods.catalog import USUAL_METHODS
from manifoldry.methods.choice import default_method
from manifoldry.methods.fitted_steps import divided
from manifoldry.methods.preprocessing import Preprocessing

_MODEL = ".model"
# Rows up to which maps by several methods are made unasked; of more, one beside PCA.
_FEW_ENOUGH = 20_000


def explore_files(ctx: typer.Context, sources: Sequence[Path]) -> None:
    """Explore data, models or both."""
    params = ctx.params
    check_installed()
    settings_of_methods(params["methods"] or (), ())  # a wrong name is reported at once
    with Console.of(params) as console:
        address = Address.bound(params["port"])
        session = _session(sources, params, console)
        show = params["browser"] and not params["json"]
        serve(session, address, browser=show, ready=lambda: _announce(session, address, console))


def _announce(session: Session, address: Address, console: Console) -> None:
    text = f"{session.title}\n{address.link}\nCtrl-C ends the explorer."
    result = {"command": "explore", "link": address.link, "n_samples": session.data.n}
    console.finish(result, text)
    if console.quiet and not console.as_json:
        print(address.link, flush=True)  # without it the page cannot be opened


def _session(sources: Sequence[Path], params: Mapping[str, Any], console: Console) -> Session:
    """Everything that is shown; maps that are not there yet are made in the background."""
    models = [path for path in sources if path.suffix == _MODEL]
    files = [path for path in sources if path not in models]
    if len(files) > 1:
        raise UsageError(
            f"{files[0]} and {files[1]} are both data; name one file of data, and models with the "
            f"ending {_MODEL}"
        )
    fitted = {path: load(path) for path in models}
    file = files[0] if files else _data_beside(models, console)
    main = file or (models[0] if models else Path("digits"))
    check_output(params, main, LABEL_FORMATS)
    notes: list[str] = []
    data = _data(file, fitted, params, console, notes)
    title = ", ".join(path.name for path in (file, *models) if path) or "handwritten digits"
    labels = output_path(params, main, "labels.csv")
    session = Session(data, title, notes, seed=params["seed"], n_jobs=params["jobs"],
                      device=params["device"], source=file, labels_file=labels)  # fmt: skip
    try:
        _add_maps(session, fitted, params, console)
    except BaseException:
        session.close()
        raise
    for note in notes:
        if note not in data.table.notes:  # those were printed when the file was read
            console.note(note)
    return session


def _data_beside(models: Sequence[Path], console: Console) -> Path | None:
    """The data of a model, if a file of the name that it knows is beside it or in this folder."""
    for model in models:
        known = Path(str(read_info(model).training.get("input", ""))).name
        for place in (model.parent / known, Path(known)):
            if known and place.exists() and place != model:
                console.note(f"{place}: the data of {model.name}, as it says")
                return place
    return None


def _data(
    file: Path | None,
    fitted: Mapping[Path, Any],
    params: Mapping[str, Any],
    console: Console,
    notes: list[str],
) -> ExploredData:
    if file is None and fitted:
        notes.append("only maps are shown; name the file of the data, too, to see rows")
        known = (read_info(path).training.get("feature_names") for path in fitted)
        names = next((names for names in known if names), None)
        return data_of_maps(list(fitted.values()), None, names=names)
    table = read_digits() if file is None else _table(file, list(fitted), params, console)
    image = _image_style(table, params, dark_ink=file is None or params["dark_ink"])
    before = Preprocessing.of({**params, "scale": params["scale"] if not fitted else False})
    return explored_data(table, notes, image=image, before=before)


def _table(
    file: Path, models: Sequence[Path], params: Mapping[str, Any], console: Console
) -> Table:
    """The table of a file; beside a model, the columns that it was fitted on."""
    known = [read_info(model).training.get("feature_names") for model in models]
    features = next((names for names in known if names and not params["columns"]), None)
    return read_input(file, params, console, features=features, missing=True)


def _image_style(table: Table, params: Mapping[str, Any], *, dark_ink: bool) -> ImageStyle | None:
    given = params["image_shape"]
    if given is None:
        return None if table.image_shape is None else ImageStyle(tuple(table.image_shape), dark_ink)
    try:
        shape = tuple(int(part) for part in given.replace("x", ",").split(","))
    except ValueError:
        raise UsageError(
            f"--image-shape {given} must be like 28x28, or 32x32x3 for colors"
        ) from None
    style = ImageStyle(shape, dark_ink)
    style.check(int(table.X.shape[1]))
    return style


def _add_maps(
    session: Session, fitted: Mapping[Path, Any], params: Mapping[str, Any], console: Console
) -> None:
    data = session.data
    for model in fitted.values():
        add_map(session, title_of(divided(model)[1]), model)
    for path in params["maps"] or ():
        add_map(session, path.stem, read_map(path, data.table, params, console))
    names = params["methods"] or ()
    if not (names or session.maps):
        names = _usual(data, params["seed"], session.notes)
    for method, settings in settings_of_methods(names, params["settings"] or ()).items():
        pairs = (setting.partition("=") for setting in settings)
        chosen = {} if params["components"] is None else {"n_components": str(params["components"])}
        chosen |= {name.strip(): value for name, _, value in pairs}
        session.work.fit(method, chosen)


def _usual(data: ExploredData, seed: int, notes: list[str]) -> tuple[str, ...]:
    """The methods of a report; of many rows, PCA and the one that suits them."""
    n = data.n
    if n <= _FEW_ENOUGH:
        return USUAL_METHODS if n >= 20 else ("pca",)
    suited = default_method(data.prepared, seed)
    notes.append(
        f"of {n:,} rows only maps by pca and {suited.method} are made unasked "
        f"({suited.method}: {suited.reason})"
    )
    return tuple(dict.fromkeys(("pca", suited.method)))
