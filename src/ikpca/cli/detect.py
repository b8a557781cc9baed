"""``ikpca detect``: flag rows that differ from normal ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import ikpca
from ikpca.cli import options as opt
from ikpca.cli.models import load_model, read_rows, read_training_rows, store_encoder
from ikpca.cli.output import UsageError, check_outputs, reporting
from ikpca.cli.plot import check_picture, plotting, save_figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ikpca.columns import ColumnEncoder
    from ikpca.kernels import Floats

#: Rows that are explained at a time.
_STRIP_ROWS = 8192
#: Columns that are named for each row, and rows whose contributions are plotted.
_TOP_COLUMNS, _WORST_ROWS = 3, 8


def detect(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="NORMAL NEW", help="Normal rows and new rows; with --model only new rows."
        ),
    ],
    out: opt.TableOut,
    false_alarm_rate: Annotated[
        float | None,
        opt.option(
            "Fraction of normal rows that may be flagged.",
            "--false-alarm-rate",
            "-a",
            default="0.05",
        ),
    ] = None,
    calibration: Annotated[
        Literal["cv", "blocked-cv"] | None,
        opt.option(
            "Folds that set the limit: random, or contiguous for time series.", default="cv"
        ),
    ] = None,
    cv: Annotated[int | None, opt.option("Number of folds.", default="5")] = None,
    n_components: Annotated[
        Any,
        opt.option(
            "Number of components, or a fraction of the variance.",
            "--n-components",
            "-n",
            default="0.99",
            **opt.number_or((), opt.count_or_fraction, "must be a number or a fraction"),
        ),
    ] = None,
    kernel: opt.Kernel = None,
    gamma: opt.Gamma = None,
    random_state: opt.Seed = 0,
    max_memory: opt.MaxMemory = None,
    n_jobs: opt.Threads = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    ids: opt.Id = None,
    standardize: opt.Standardize = False,
    missing: opt.Missing = "error",
    one_hot: opt.OneHot = False,
    picture: Annotated[
        Path | None,
        opt.option("Picture of scores and contributions: .png, .pdf or .svg.", "--plot"),
    ] = None,
    save_model: opt.SaveModel = None,
    model: Annotated[
        Path | None, opt.option("A model of --save-model, in place of NORMAL.", "--model", "-m")
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Flag rows of a table that differ from normal rows.

    The score is the reconstruction error of kernel PCA; its limit is calibrated by
    cross-validation. The output has the ids or numbers of rows, score, p-value, flag (1 is novel)
    and, for flagged rows, the three columns that contribute most. A row with text that no normal
    row has is flagged, with an infinite score. If NEW has the rows of NORMAL, each is scored by
    models that were fitted without it.

    Example: ikpca detect normal.csv new.csv --out flags.csv --false-alarm-rate 0.01 --standardize
    """
    settings = opt.given_options(locals(), ikpca.NoveltyDetector)
    import numpy as np

    from ikpca.cli.files import check_target, write_table
    from ikpca.columns import ColumnEncoder, ColumnOptions

    selected = ColumnOptions(columns, drop, ids, standardize, missing, one_hot)
    with reporting(quiet, as_json) as report:
        _check_inputs(inputs, model, settings, selected != ColumnOptions(ids=ids))
        check_outputs([out, picture, save_model], [*inputs, model], force=force)
        check_target(out, text=["feature_1"])
        if picture is not None:
            check_picture(picture, "--plot")
        if model is None:
            detector: Any = ikpca.NoveltyDetector(**settings)
            normal, fitted = read_training_rows(inputs[0], selected)
            encoder = fitted or ColumnEncoder(normal.names, normal.n_columns)
        else:
            detector, encoder = load_model(model, "p_values", "ikpca detect --save-model")
        table = read_rows(inputs[-1], encoder, model or inputs[0], ids=ids, allow_unknown=True)
        is_normal = False
        if model is None:
            with report.progress("Learning normal rows"):
                detector.fit(normal.rows)
            store_encoder(detector, fitted)
            is_normal = np.array_equal(table.rows, normal.rows)
        is_unknown = encoder.has_unknown_text(table.rows).any(axis=1)
        if is_normal:
            # All but one of the models know a row, and would reconstruct it too well.
            scores = detector.calibration_errors_
        else:
            with report.progress("Scoring"):
                scores = -detector.score_samples(table.rows)
            scores[is_unknown] = np.inf
        # p_values would compute the scores again.
        p_values = detector._p_values(scores)
        flags = ((scores > -detector.offset_) | is_unknown).astype(np.int64)
        with report.progress("Explaining"):
            top = _top_columns(detector, encoder, table.rows, np.flatnonzero(flags))
        if save_model is not None:
            detector.save(save_model)
        row_ids = dict(table.ids) or {table.unit: table.row_numbers}
        if picture is not None:
            save_figure(_page(detector, encoder, table.rows, scores, row_ids), picture)
        write_table(out, {"score": scores, "p_value": p_values, "flag": flags, **top}, row_ids)
        document = {
            "input": inputs[-1],
            "model": model,
            "normal_rows": None if model is not None else len(normal.rows),
            "rows": len(flags),
            "flagged": int(flags.sum()),
            "unknown_text": int(is_unknown.sum()),
            "false_alarm_rate": detector.false_alarm_rate,
            "limit": -detector.offset_,
        }
        outputs = [path for path in (out, picture, save_model) if path is not None]
        report.show(document, _summary(document), wrote=outputs)


def _check_inputs(
    inputs: list[str], model: Path | None, settings: dict[str, Any], has_columns: bool
) -> None:
    if model is None and len(inputs) != 2:
        raise UsageError("pass a file of normal rows and one of new rows, or --model and new rows.")
    if model is None:
        return
    if len(inputs) != 1:
        raise UsageError("pass only new rows with --model, which has learned the normal ones.")
    for name in settings:
        # The seed has a default and cannot be told apart from it.
        if name != "random_state":
            raise UsageError(f"{opt.flag(name)} has no effect with --model; leave it out.")
    if has_columns:
        raise UsageError("options for columns have no effect with --model, except --id.")


def _contributions(detector: Any, encoder: ColumnEncoder, rows: Floats) -> Floats:
    """Return the contributions of the input columns to the scores of some rows."""
    import numpy as np

    contributions = encoder.sum_columns(detector.explain(rows))
    contributions[encoder.has_unknown_text(rows)] = np.inf
    return contributions


def _top_columns(
    detector: Any, encoder: ColumnEncoder, rows: Floats, flagged: NDArray[np.intp]
) -> dict[str, NDArray[np.object_]]:
    """Return the names of the columns that contribute most to the scores of flagged rows."""
    import numpy as np

    names = np.array(encoder.names, dtype=object)
    top = np.full((len(rows), min(_TOP_COLUMNS, len(names))), "", dtype=object)
    for start in range(0, len(flagged), _STRIP_ROWS):
        strip = flagged[start : start + _STRIP_ROWS]
        contributions = _contributions(detector, encoder, rows[strip])
        top[strip] = names[np.argsort(-contributions, kind="stable")[:, : top.shape[1]]]
    return {f"feature_{number}": column for number, column in enumerate(top.T, start=1)}


def _page(
    detector: Any, encoder: ColumnEncoder, rows: Floats, scores: Floats, ids: dict[str, Any]
) -> Any:
    """Plot scores, and the contributions of the rows with the largest ones."""
    import numpy as np

    worst = np.argsort(-scores, kind="stable")[:_WORST_ROWS]
    (row_names, *_) = ids.values()
    limit = -detector.offset_
    # Infinite scores are drawn above all others.
    heights = np.append(scores, limit)
    top = 1.1 * heights[np.isfinite(heights)].max(initial=0)
    return plotting().novelty_page(
        np.minimum(scores, top),
        limit,
        np.minimum(_contributions(detector, encoder, rows[worst]), top),
        names=encoder.names,
        row_names=[str(name) for name in row_names[worst]],
    )


def _summary(document: dict[str, Any]) -> str:
    unknown = document["unknown_text"]
    reason = f", {unknown} of them for text that no normal row has" if unknown else ""
    return (
        f"{document['flagged']} of {document['rows']} rows are flagged{reason}; limit "
        f"{document['limit']:.4g} for {document['false_alarm_rate']:.3g} false alarms."
    )
