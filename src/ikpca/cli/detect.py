"""``ikpca detect``: flag rows that differ from normal ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import ikpca
from ikpca.cli.errors import UsageError
from ikpca.cli.models import (
    check_output,
    load_model,
    read_rows,
    store_encoder,
    stored_encoder,
    write_results,
)
from ikpca.cli.options import (
    COUNT_OR_FRACTION,
    Columns,
    Drop,
    Force,
    Gamma,
    Id,
    Json,
    Kernel,
    MaxMemory,
    Missing,
    OneHot,
    Quiet,
    Seed,
    Standardize,
    Threads,
    one_of,
)
from ikpca.cli.output import Report, check_outputs, reporting, rows_without_names
from ikpca.cli.plot import check_picture, plotting, save_figure

if TYPE_CHECKING:
    from ikpca.columns import ColumnEncoder, ColumnOptions
    from ikpca.tables import Table

#: Options by parameter of NoveltyDetector, which a saved model determines.
_FLAGS = {
    "false_alarm_rate": "--false-alarms",
    "calibration": "--calibration",
    "cv": "--folds",
    "n_components": "--n-components",
    "kernel": "--kernel",
    "gamma": "--gamma",
    "max_memory": "--max-memory",
    "n_jobs": "--threads",
}
#: Rows that are scored at a time.
_STRIP_ROWS = 8192
#: Columns that are named for each row, and rows whose contributions are plotted.
_TOP_COLUMNS, _WORST_ROWS = 3, 8
_File: TypeAlias = Path | None


def detect(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="NORMAL NEW", help="Normal rows and new rows; with --model only new rows."
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="Flags of new rows: .csv or .parquet.")],
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(
            "--false-alarms",
            "-a",
            help="Fraction of normal rows that may be flagged.",
            show_default="0.05",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            "--calibration",
            help="Folds that set the limit: cv, random; blocked-cv, contiguous, for time series.",
            show_default="cv",
            **one_of(("cv", "blocked-cv")),
        ),
    ] = None,
    cv: Annotated[
        int | None, typer.Option("--folds", help="Number of folds.", show_default="5")
    ] = None,
    n_components: Annotated[
        Any,
        typer.Option(
            "--n-components",
            "-n",
            help="Number of components, or a fraction of the variance.",
            show_default="0.99",
            **COUNT_OR_FRACTION,
        ),
    ] = None,
    kernel: Kernel = None,
    gamma: Gamma = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    n_jobs: Threads = None,
    columns: Columns = None,
    drop: Drop = None,
    ids: Id = None,
    standardize: Standardize = False,
    missing: Missing = "error",
    one_hot: OneHot = False,
    picture: Annotated[
        _File,
        typer.Option("--plot", help="Picture of scores and contributions: .png, .pdf or .svg."),
    ] = None,
    explain: Annotated[
        str,
        typer.Option(
            "--explain",
            help="Rows for which the columns that contribute most are found: flagged or all.",
            **one_of(("flagged", "all")),
        ),
    ] = "flagged",
    save: Annotated[_File, typer.Option("--save", help="Also write the model to a file.")] = None,
    model: Annotated[
        _File, typer.Option("--model", "-m", help="A model that --save wrote, in place of NORMAL.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Flag rows of a table that differ from normal rows.

    The score is the reconstruction error of kernel PCA; its limit is calibrated by
    cross-validation. The output has the ids or numbers of rows, score, p-value, flag (1 is novel)
    and, for flagged rows, the three columns that contribute most. A row with text that no normal
    row has is flagged, with an infinite score. If NEW has the rows of NORMAL, each is scored by
    models that were fitted without it.

    Example: ikpca detect normal.csv new.csv --out flags.csv --false-alarms 0.01 --standardize
    """
    given = locals()
    from ikpca.columns import ColumnOptions

    settings = {name: given[name] for name in _FLAGS if given[name] is not None}
    with reporting(quiet, as_json) as report:
        _check_inputs(inputs, model, settings)
        check_outputs([out, picture, save], [*inputs, model], force=force)
        if not out.lower().endswith((".csv", ".parquet")):
            raise UsageError(f"--out: {out} does not hold text; pass a .csv or .parquet file.")
        check_output(out, ids)
        if picture is not None:
            check_picture(picture, "--plot")
        selected = ColumnOptions(columns, drop, ids, standardize, missing, one_hot)
        if model is None:
            run = _Detection.fit(report, inputs, settings, random_state, selected)
        else:
            run = _Detection.load(model, inputs[0], selected)
        run.score(report)
        run.explain(report, explain)
        if save is not None:
            run.detector.save(save)
        if picture is not None:
            save_figure(run.plot(), picture)
        run.write(out)
        report.show(
            {"input": inputs[-1], "model": model, **run.document},
            run.summary,
            wrote=[out, *(path for path in (picture, save) if path is not None)],
        )


def _check_inputs(inputs: list[str], model: Path | None, settings: dict[str, Any]) -> None:
    if model is None and len(inputs) != 2:
        raise UsageError("pass a file of normal rows and one of new rows, or --model and new rows.")
    if model is not None and len(inputs) != 1:
        raise UsageError("pass only new rows with --model, which has learned the normal ones.")
    if model is not None and settings:
        raise UsageError(
            f"{_FLAGS[next(iter(settings))]} has no effect with --model; leave it out."
        )


class _Detection:
    """A detector and the results for new rows."""

    def __init__(
        self,
        detector: Any,
        encoder: ColumnEncoder,
        table: Table,
        n_normal: int | None = None,
        is_normal: bool = False,
    ) -> None:
        self.detector, self._encoder, self._table = detector, encoder, table
        self._n_normal, self._is_normal = n_normal, is_normal

    @classmethod
    def fit(
        cls,
        report: Report,
        inputs: list[str],
        settings: dict[str, Any],
        seed: int,
        selected: ColumnOptions,
    ) -> _Detection:
        """Fit a detector to normal rows, and read new rows before that."""
        from ikpca.columns import ColumnEncoder

        normal, new = inputs
        if settings.get("gamma") == "columns":
            settings["gamma"] = None
        detector: Any = ikpca.NoveltyDetector(random_state=seed, **settings)
        rows, fitted = selected.read(normal)
        encoder = fitted or ColumnEncoder.numbered(rows.rows.shape[1])
        table = read_rows(new, encoder, normal, ids=selected.ids, allow_unknown=True)
        with report.progress("Learning normal rows"):
            detector.fit(rows.rows)
        store_encoder(detector, fitted)
        return cls(detector, encoder, table, len(rows.rows), _equal_rows(table.rows, rows.rows))

    @classmethod
    def load(cls, path: Path, new: str, selected: ColumnOptions) -> _Detection:
        """Load a detector and read new rows."""
        from ikpca.columns import ColumnOptions

        if selected != ColumnOptions(ids=selected.ids):
            raise UsageError("options for columns have no effect with --model, except --id.")
        detector = load_model(path, "p_values", "ikpca detect --save")
        encoder = stored_encoder(detector)
        table = read_rows(new, encoder, path, ids=selected.ids, allow_unknown=True)
        return cls(detector, encoder, table)

    def score(self, report: Report) -> None:
        """Compute scores in strips of rows, p-values and flags."""
        import numpy as np

        detector, rows = self.detector, self._table.rows
        self._scores, self._unknown = np.empty(len(rows)), np.zeros(len(rows), dtype=bool)
        if self._is_normal:
            # All but one of the models know a row, and would reconstruct it too well.
            self._scores[:] = detector.calibration_errors_
        else:
            with report.progress("Scoring") as advance, rows_without_names():
                for strip in _strips(len(rows)):
                    self._scores[strip] = -detector.score_samples(rows[strip])
                    self._unknown[strip] = self._encoder.has_unknown_text(rows[strip]).any(axis=1)
                    advance(strip.stop, len(rows))
        self._scores[self._unknown] = np.inf
        # p_values would compute the scores again.
        self._p_values = detector._p_values(self._scores)
        self._flags = ((self._scores > -detector.offset_) | self._unknown).astype(np.int64)

    def explain(self, report: Report, which: str) -> None:
        """Find the columns that contribute most to all or to flagged rows."""
        import numpy as np

        names = np.array(self._encoder.names, dtype=object)
        shape = len(self._scores), min(_TOP_COLUMNS, len(names))
        self._top = np.full(shape, "", dtype=object)
        explained = np.arange(shape[0]) if which == "all" else np.flatnonzero(self._flags)
        with report.progress("Explaining") as advance:
            for strip in _strips(len(explained)):
                order = np.argsort(-self._contributions(explained[strip]), axis=1, kind="stable")
                self._top[explained[strip]] = names[order[:, : shape[1]]]
                advance(strip.stop, len(explained))

    def _contributions(self, chosen: Any) -> Any:
        """Return the contributions of the input columns to some rows."""
        import numpy as np

        rows = self._table.rows[chosen]
        with rows_without_names():
            contributions = self._encoder.sum_columns(self.detector.explain(rows))
        contributions[self._encoder.has_unknown_text(rows)] = np.inf
        return contributions

    def _row_ids(self) -> dict[str, Any]:
        return dict(self._table.ids) or {self._table.counted: self._table.row_numbers}

    def write(self, out: str) -> None:
        """Write one line per row."""
        results = {"score": self._scores, "p_value": self._p_values, "flag": self._flags}
        results |= {f"feature_{at}": column for at, column in enumerate(self._top.T, start=1)}
        write_results(out, self._row_ids(), results)

    def plot(self) -> Any:
        """Plot scores, and the contributions of the rows with the largest ones."""
        import numpy as np

        worst = np.argsort(-self._scores, kind="stable")[:_WORST_ROWS]
        (rows, *_) = self._row_ids().values()
        limit = -self.detector.offset_
        # Infinite scores are drawn above all others.
        heights = np.append(self._scores, limit)
        top = 1.1 * heights[np.isfinite(heights)].max(initial=0)
        return plotting().novelty_page(
            np.minimum(self._scores, top),
            limit,
            np.minimum(self._contributions(worst), top),
            names=self._encoder.names,
            row_names=[str(name) for name in rows[worst]],
        )

    @property
    def document(self) -> dict[str, Any]:
        """Results as a document."""
        return {
            "normal_rows": self._n_normal,
            "rows": len(self._flags),
            "flagged": int(self._flags.sum()),
            "unknown_text": int(self._unknown.sum()),
            "false_alarm_rate": self.detector.false_alarm_rate,
            "limit": -self.detector.offset_,
        }

    @property
    def summary(self) -> str:
        """Results as a sentence."""
        found = self.document
        unknown = found["unknown_text"]
        reason = f", {unknown} of them for text that no normal row has" if unknown else ""
        return (
            f"{found['flagged']} of {found['rows']} rows are flagged{reason}; limit "
            f"{found['limit']:.4g} for {found['false_alarm_rate']:.3g} false alarms."
        )


def _equal_rows(X: Any, Y: Any) -> bool:
    import numpy as np

    return len(X) == len(Y) and all(np.array_equal(X[s], Y[s]) for s in _strips(len(X)))


def _strips(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _STRIP_ROWS):
        yield slice(start, min(start + _STRIP_ROWS, n_rows))
