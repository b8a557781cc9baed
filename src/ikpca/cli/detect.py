"""``ikpca detect``: flag rows that differ from normal ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import ikpca
from ikpca.cli import options as opt
from ikpca.cli.apply import check_picture, save_figure
from ikpca.cli.models import load_model, read_rows, read_training_rows, store_encoder
from ikpca.cli.output import UsageError, check_outputs, reporting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ikpca.columns import Cells, ColumnEncoder
    from ikpca.kernels import Floats

#: Rows that are explained at a time.
_STRIP_ROWS = 8192
#: Columns that are named for each row, and rows whose contributions are plotted.
_TOP_COLUMNS, _WORST_ROWS = 3, 8


class _DetectorOptions(opt.KernelOptions, total=False):
    false_alarm_rate: Annotated[
        float,
        opt.option(
            "Fraction of normal rows that may be flagged.",
            "--false-alarm-rate",
            "-a",
            default="0.05",
        ),
    ]
    calibration: Annotated[
        Literal["cv", "blocked-cv"],
        opt.option(
            "Folds that set the limit: random, or contiguous for time series.", default="cv"
        ),
    ]
    cv: Annotated[int, opt.option("Number of folds.", default="5")]
    n_components: Annotated[
        str,
        opt.option(
            "Number of components, or a fraction of the variance.",
            "--n-components",
            "-n",
            default="0.99",
            metavar="NUMBER",
        ),
    ]


def detect(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="NORMAL NEW", help="Normal rows and new rows; with --model only new rows."
        ),
    ],
    out: opt.TableOut,
    parameters: _DetectorOptions,
    columns: opt.ColumnOptions,
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
    import numpy as np

    from ikpca.cli.files import check_target, write_table
    from ikpca.columns import ColumnEncoder

    ids = columns.get("ids")
    with reporting(quiet, as_json) as report:
        _check_inputs(inputs, model, parameters, columns)
        check_outputs([out, picture, save_model], [*inputs, model], force=force)
        check_target(out, text=["feature_1"])
        if picture is not None:
            check_picture(picture, "--plot")
        if model is None:
            detector: Any = ikpca.NoveltyDetector(**opt.parse_settings(parameters))
            normal, fitted = read_training_rows(inputs[0], **columns)
            encoder = fitted or ColumnEncoder(normal.names, normal.n_columns)
        else:
            detector, encoder = load_model(model, "p_values", "ikpca detect --save-model")
        table = read_rows(inputs[-1], encoder, model or inputs[0], ids=ids, allow_unknown=True)
        if model is None:
            with report.progress("Learning normal rows"):
                detector.fit(normal.rows)
            store_encoder(detector, fitted)
        is_unknown = encoder.has_unknown_text(table.rows).any(axis=1)
        with report.progress("Scoring"):
            if model is None and np.array_equal(table.rows, normal.rows):
                # All but one of the models know a row, and would reconstruct it too well.
                scores = detector.calibration_errors_
            else:
                scores = np.where(is_unknown, np.inf, -detector.score_samples(table.rows))
            # p_values would compute the scores again.
            p_values = detector._p_values(scores)
        limit = -detector.offset_
        flags = ((scores > limit) | is_unknown).astype(np.int64)
        results = {"score": scores, "p_value": p_values, "flag": flags}
        with report.progress("Explaining"):
            results |= _top_columns(detector, encoder, table.rows, np.flatnonzero(flags))
        if save_model is not None:
            detector.save(save_model)
        row_ids = {**table.ids} or {table.unit: table.frame.index}
        if picture is not None:
            save_figure(_page(detector, encoder, table.rows, scores, row_ids), picture)
        write_table(out, results, row_ids)
        n_rows, n_flagged, n_unknown = len(flags), int(flags.sum()), int(is_unknown.sum())
        document = {
            "input": inputs[-1], "model": model,
            "normal_rows": None if model is not None else len(normal.rows),
            "rows": n_rows, "flagged": n_flagged, "unknown_text": n_unknown,
            "false_alarm_rate": detector.false_alarm_rate, "limit": limit,
        }  # fmt: skip
        reason = f", {n_unknown} of them for text that no normal row has" if n_unknown else ""
        report.show(
            document,
            f"{n_flagged} of {n_rows} rows are flagged{reason}; limit {limit:.4g} for "
            f"{detector.false_alarm_rate:.3g} false alarms.",
            wrote=[path for path in (out, picture, save_model) if path is not None],
        )


def _check_inputs(
    inputs: list[str],
    model: Path | None,
    parameters: _DetectorOptions,
    columns: opt.ColumnOptions,
) -> None:
    if len(inputs) != (2 if model is None else 1):
        raise UsageError("pass normal rows and new rows, or --model and only new rows.")
    if model is None:
        return
    for name in parameters:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag} has no effect with --model; leave it out.")
    if columns.keys() - {"ids"}:
        raise UsageError("options for columns have no effect with --model, except --id.")


def _contributions(detector: Any, encoder: ColumnEncoder, rows: Floats) -> Floats:
    """Return the contributions of the input columns to the scores of some rows."""
    contributions = encoder.sum_columns(detector.explain(rows))
    contributions[encoder.has_unknown_text(rows)] = float("inf")
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
    detector: Any, encoder: ColumnEncoder, rows: Floats, scores: Floats, ids: Mapping[str, Cells]
) -> Any:
    """Plot scores, and the contributions to the largest ones."""
    import numpy as np

    from ikpca.plotting import novelty_page

    worst = np.argsort(-scores, kind="stable")[:_WORST_ROWS]
    return novelty_page(
        scores,
        -detector.offset_,
        _contributions(detector, encoder, rows[worst]),
        names=encoder.names,
        row_names=[str(name) for name in np.asarray(next(iter(ids.values())))[worst]],
    )
