"""Novelty detection: accuracy and false alarms against other detectors, drifts, and cost.

detection  AUROC, false alarms at nominal 5 % and 1 %, and seconds, trained on normal rows
drift      false alarms of a static and of a streaming detector under slow drifts
cost       time of calibration and of scoring, relative to a fit of KernelPCA; with many rows also
           the peak memory of the fit
many       AUROC and false alarms with many normal rows, for several numbers of landmarks

The part many uses a curved surface and, if mnist.npz is in the folder of the data, digits.

The sets of adbench.npz are read from the folder named by IKPCA_DATA; without it, classes of
scikit-learn's breast cancer, digits and wine are used. PyOD's KPCA takes part if it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from contestants import best_seconds, curved_rows
from ikpca import KernelPCA, NoveltyDetector
from ikpca.kernels import Floats
from ikpca.solvers import Nystrom
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import run_in_subprocess

_OURS = "NoveltyDetector"
_RATES = (0.05, 0.01)
_TRAINING_ROWS = 1000
#: Scores of training and of new rows; higher is more anomalous.
Scores = tuple[Floats, Floats]


def knn(train: Floats, new: Floats) -> Scores:
    """Mean distance to the five nearest rows; a training row is not its own neighbor."""
    neighbors = NearestNeighbors(n_neighbors=5).fit(train)
    return neighbors.kneighbors()[0].mean(axis=1), neighbors.kneighbors(new)[0].mean(axis=1)


def lof(train: Floats, new: Floats) -> Scores:
    model = LocalOutlierFactor(novelty=True).fit(train)
    return -model.negative_outlier_factor_, -model.score_samples(new)


def isolation_forest(train: Floats, new: Floats) -> Scores:
    model = IsolationForest(random_state=0).fit(train)
    return -model.score_samples(train), -model.score_samples(new)


def one_class_svm(train: Floats, new: Floats) -> Scores:
    model = OneClassSVM(gamma="scale").fit(train)
    return -model.score_samples(train), -model.score_samples(new)


def pca(train: Floats, new: Floats) -> Scores:
    """Squared distance to the components with 90 % of the variance."""
    model = PCA(0.9).fit(train)
    errors = (
        np.square(rows - model.inverse_transform(model.transform(rows))).sum(axis=1)
        for rows in (train, new)
    )
    return next(errors), next(errors)


def mahalanobis(train: Floats, new: Floats) -> Scores:
    model = LedoitWolf().fit(train)
    return model.mahalanobis(train), model.mahalanobis(new)


def kernel_pca(train: Floats, new: Floats) -> Scores:
    """The error of one model, with a threshold from its training rows."""
    model = KernelPCA(0.99, kernel="rbf", gamma="scale").fit(train)
    return model.reconstruction_error(train), model.reconstruction_error(new)


def pyod_kernel_pca(train: Floats, new: Floats) -> Scores:
    model = _pyod_model(_RATES[0]).fit(train)
    return model.decision_scores_, model.decision_function(new)


def pyod_limits(train: Floats) -> dict[float, float]:
    """Return the thresholds of PyOD, for which the rate is its contamination."""
    return {rate: float(_pyod_model(rate).fit(train).threshold_) for rate in _RATES}


def _pyod_model(rate: float) -> Any:
    from pyod.models.kpca import KPCA

    return KPCA(contamination=rate, random_state=0)


CONTESTANTS: dict[str, Callable[[Floats, Floats], Scores]] = {
    "kNN": knn,
    "LOF": lof,
    "IForest": isolation_forest,
    "OCSVM": one_class_svm,
    "PCA": pca,
    "Mahalanobis": mahalanobis,
    "KernelPCA, training errors": kernel_pca,
}
if find_spec("pyod") is not None:
    CONTESTANTS[f"PyOD {version('pyod')} KPCA"] = pyod_kernel_pca


def data_sets(folder: Path | None) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield names, normal rows and anomalous rows."""
    if folder is not None and (folder / "adbench.npz").exists():
        with np.load(folder / "adbench.npz") as sets:
            for name in sorted(key[:-2] for key in sets.files if key.endswith(".y")):
                X, y = sets[f"{name}.X"].astype(np.float64), sets[f"{name}.y"]
                yield name, X[y == 0], X[y == 1]
        return
    for load in (load_breast_cancer, load_wine, load_digits):
        X, y = load(return_X_y=True)
        normal = 1 if load is load_breast_cancer else 0
        yield load.__name__[5:], X[y == normal], X[y != normal]


def split(normal: Floats, novel: Floats, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return standardized training rows, other normal rows, and anomalous rows."""
    order = np.random.default_rng(seed).permutation(len(normal))
    number = min(_TRAINING_ROWS, len(normal) // 2)
    scaler = StandardScaler().fit(normal[order[:number]])
    train, rest, novel = (
        scaler.transform(rows) for rows in (normal[order[:number]], normal[order[number:]], novel)
    )
    return train, rest, novel


def uniform_distance(p: Floats) -> float:
    """Return the Kolmogorov–Smirnov distance of p-values to the uniform distribution."""
    ranks = np.arange(len(p) + 1) / len(p)
    ordered = np.sort(p)
    return float(max((ranks[1:] - ordered).max(), (ordered - ranks[:-1]).max()))


def expected_distance(n_train: int, n_new: int, draws: int = 100) -> float:
    """Return the mean distance of exact conformal p-values: rows and errors are a sample, too."""
    rng = np.random.default_rng(0)
    distances = []
    for _ in range(draws):
        errors = np.sort(rng.random(n_train))
        larger = n_train - np.searchsorted(errors, rng.random(n_new))
        distances.append(uniform_distance((1 + larger) / (n_train + 1)))
    return float(np.mean(distances))


def ours(train: Floats, rest: Floats, novel: Floats, **settings: Any) -> dict[str, float]:
    started = time.perf_counter()
    detector = NoveltyDetector(random_state=0, **settings).fit(train)
    scores = -detector.score_samples(np.vstack([rest, novel]))
    seconds = time.perf_counter() - started
    p = detector.p_values(rest)
    result = {
        "auroc": _auroc(scores, len(rest)),
        "seconds": seconds,
        "ks": uniform_distance(p),
        "ks expected": expected_distance(len(train), len(rest)),
    }
    return result | {f"alarms {rate:g}": float(np.mean(p <= rate)) for rate in _RATES}


def theirs(method: Any, train: Floats, rest: Floats, novel: Floats) -> dict[str, float]:
    started = time.perf_counter()
    training_scores, scores = method(train, np.vstack([rest, novel]))
    seconds = time.perf_counter() - started
    result = {"auroc": _auroc(scores, len(rest)), "seconds": seconds}
    if method is pyod_kernel_pca:
        limits = pyod_limits(train)
    else:
        limits = {rate: np.quantile(training_scores, 1 - rate) for rate in _RATES}
    alarms = {
        f"alarms {rate:g}": float(np.mean(scores[: len(rest)] > limit))
        for rate, limit in limits.items()
    }
    return result | alarms


def _auroc(scores: Floats, n_normal: int) -> float:
    return float(roc_auc_score(np.arange(len(scores)) >= n_normal, scores))


def run_detection(arguments: argparse.Namespace) -> None:
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, normal, novel in data_sets(arguments.data):
        for seed in arguments.seeds:
            rows = split(normal, novel, seed)
            sizes = {"set": name, "train": len(rows[0]), "normal": len(rows[1])}
            runs[_OURS].append(sizes | ours(*rows))
            for method, run in CONTESTANTS.items():
                runs[method].append(sizes | theirs(run, *rows))
        print(name, *(f"{method} {_mean(result[-len(arguments.seeds):], 'auroc'):.3f}"
                      for method, result in runs.items()), sep=", ", flush=True)  # fmt: skip
    table = [_summary(name, result, runs[_OURS]) for name, result in runs.items()]
    print("| detector | AUROC | wins–losses of ours | alarms at 5 %: median, max | at 1 % | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in table:
        print(
            f"| {row['name']} | {row['auroc']:.1%} | {row['wins']}–{row['losses']} "
            f"| {row['alarms 0.05']:.1%}, {row['worst 0.05']:.1%} "
            f"| {row['alarms 0.01']:.1%}, {row['worst 0.01']:.1%} | {row['seconds']:.2f} |"
        )
    large = [run for run in runs[_OURS] if run["normal"] >= 500]
    for what, chosen in {"all sets": runs[_OURS], "500 normal test rows or more": large}.items():
        if chosen:
            print(f"distance of p-values to uniform, {what}: mean {_mean(chosen, 'ks'):.3f}; exact "
                  f"p-values would have {_mean(chosen, 'ks expected'):.3f}")  # fmt: skip
    _write(arguments, "novelty", {"table": table})
    _write(arguments, "novelty_runs", runs)


def _mean(runs: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([run[key] for run in runs]))


def _summary(
    name: str, runs: list[dict[str, Any]], reference: list[dict[str, Any]]
) -> dict[str, Any]:
    sets = sorted({run["set"] for run in runs})
    gains = {
        data: _mean([run for run in reference if run["set"] == data], "auroc")
        - _mean([run for run in runs if run["set"] == data], "auroc")
        for data in sets
    }
    row: dict[str, Any] = {
        "name": name,
        "auroc": _mean(runs, "auroc"),
        "seconds": _mean(runs, "seconds"),
        "wins": sum(gain > 0.001 for gain in gains.values()),
        "losses": sum(gain < -0.001 for gain in gains.values()),
        "lost": {data: round(-gain, 4) for data, gain in gains.items() if gain < -0.001},
    }
    for rate in _RATES:
        alarms = [run[f"alarms {rate:g}"] for run in runs]
        row |= {f"alarms {rate:g}": np.median(alarms), f"worst {rate:g}": np.max(alarms)}
    return row


DRIFTS = ("none", "moving mean", "rotation", "growing variance")


def drifting_rows(kind: str, n_rows: int, n_first: int, seed: int) -> Floats:
    """Return rows near a curved surface in eight dimensions that drift after the first ones.

    The mean moves by 1.6 standard deviations in every feature, pairs of features rotate by 90°, or
    the standard deviation doubles.
    """
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n_rows, 2))
    surface = np.column_stack([t, t[:, 0] ** 2, t[:, 0] * t[:, 1], np.sin(3 * t[:, 1])])
    X = surface @ np.random.default_rng(7).normal(size=(5, 8))
    X += rng.normal(0, 0.2, X.shape)
    X = (X - X[:n_first].mean(axis=0)) / X[:n_first].std(axis=0)
    progress = np.clip((np.arange(n_rows) - n_first) / (n_rows - n_first), 0, 1)[:, None]
    if kind == "moving mean":
        return X + 1.6 * progress
    if kind == "growing variance":
        return X * (1 + progress)
    if kind == "rotation":
        turned = np.column_stack([-X[:, 1::2], X[:, ::2]])[:, [0, 4, 1, 5, 2, 6, 3, 7]]
        return X * np.cos(progress * np.pi / 2) + turned * np.sin(progress * np.pi / 2)
    return X


def run_drift(arguments: argparse.Namespace) -> None:
    """Flag batches of 50 rows, of which 5 % are anomalies; the first 500 rows are normal."""
    n_rows, n_first, batch, rate = (6500 if arguments.full else 3500), 500, 50, 0.02
    table = []
    for kind in DRIFTS:
        runs = []
        for seed in arguments.seeds:
            X = drifting_rows(kind, n_rows, n_first, seed)
            rng = np.random.default_rng([seed, 1])
            novel = (rng.random(n_rows) < 0.05) & (np.arange(n_rows) >= n_first)
            X[novel] += 2.5 * rng.choice([-1, 1], (novel.sum(), X.shape[1]))
            settings = {"false_alarm_rate": rate, "random_state": 0}
            static = NoveltyDetector(**settings).fit(X[:n_first])
            stream = NoveltyDetector(**settings, forgetting=0.999).fit(X[:n_first])
            flags = []
            started = time.perf_counter()
            for start in range(n_first, n_rows, batch):
                flags.append(stream.predict(X[start : start + batch]) < 0)
                stream.partial_fit(X[start : start + batch])
            seconds = (time.perf_counter() - started) / (n_rows - n_first)
            flagged = {
                "static": static.predict(X[n_first:]) < 0,
                "stream": np.concatenate(flags),
            }
            wrong = {name: flag[~novel[n_first:]].mean() for name, flag in flagged.items()}
            result = {f"{name} detected": flag[novel[n_first:]].mean()
                     for name, flag in flagged.items()}  # fmt: skip
            late = {f"{name} at the end": flag[-500:][~novel[-500:]].mean()
                    for name, flag in flagged.items()}  # fmt: skip
            runs.append(wrong | result | late | {"seconds per row": seconds})
        table.append({"drift": kind} | {key: _mean(runs, key) for key in runs[0]})
        print({key: value if isinstance(value, str) else round(value, 4)
               for key, value in table[-1].items()}, flush=True)  # fmt: skip
    _write(arguments, "novelty_drift", {"table": table})


def run_cost(arguments: argparse.Namespace) -> None:
    """Time calibration and scoring in one thread; the best of three."""
    table = []
    for n_rows in (500, 1000, 2000, *((4000,) if arguments.full else ())):
        X = drifting_rows("none", n_rows + 10_000, 500, 0)
        train, new = X[:n_rows], X[n_rows:]
        model = KernelPCA(0.99, kernel="rbf", gamma="scale", n_jobs=1)
        detector = NoveltyDetector(n_jobs=1, random_state=0)
        row = {
            "rows": n_rows,
            "fit": best_seconds(partial(model.fit, train), 3),
            "detector": best_seconds(partial(detector.fit, train), 3),
            "error": best_seconds(partial(model.reconstruction_error, new), 3),
            "score": best_seconds(partial(detector.score_samples, new), 3),
        }
        row["components"] = len(model.eigenvalues_)
        row["calibration / fit"] = row["detector"] / row["fit"] - 1
        row["scored rows per second"] = len(new) / row["score"]
        table.append(row)
        print({key: round(value, 3) for key, value in row.items()}, flush=True)
    _write(arguments, "novelty_cost", {"table": table})
    many = []
    for n_rows in (20_000, *((100_000, 1_000_000) if arguments.full else ())):
        task = partial(_cost_of_many_rows, n_rows)
        many.append(run_in_subprocess(f"{n_rows} rows", task, lambda message: None))
        print({key: round(value, 3) for key, value in many[-1].items()}, flush=True)
    _write(arguments, "novelty_cost_many", {"table": many})


def _cost_of_many_rows(n_rows: int, send: Callable[[Any], None]) -> dict[str, float]:
    """Measure the first fit of a process: seconds of the processor in one thread, and memory."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        X = curved_rows(n_rows + 20_000, 30, 4)
        train, new = X[:n_rows], X[n_rows:]
        detector, memory = NoveltyDetector(n_jobs=1, random_state=0), PeakMemory()
        fit = best_seconds(partial(detector.fit, train), 1, time.process_time)
        peak = memory.above_baseline() or 0
        # Again, only the model of all rows.
        model = clone(detector.model_)
        alone = best_seconds(partial(model.fit, train), 1, time.process_time)
        score = best_seconds(partial(detector.score_samples, new), 3, time.process_time)
        transform = best_seconds(partial(model.transform, new), 3, time.process_time)
    return {
        "rows": n_rows,
        "components": len(model.eigenvalues_),
        "seconds": fit,
        "calibration / fit": fit / alone - 1,
        "scored rows per second": len(new) / score,
        "transformed rows per second": len(new) / transform,
        "alarms 0.05": float(np.mean(detector.predict(new) == -1)),
        "peak_bytes": peak,
    }


def large_sets(folder: Path | None) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Yield names, training rows, other normal rows, and anomalous rows, in single precision.

    Two features of rows near a surface are those of other rows; the other digits are anomalous.
    """
    rows = curved_rows(44_000, 30, 4)
    rows /= rows[:40_000].std(axis=0)
    novel = rows[42_000:43_000].copy()
    novel[:, :2] = rows[43_000:, :2]
    yield "surface", rows[:40_000], rows[40_000:42_000], novel
    if folder is not None and (folder / "mnist.npz").exists():
        with np.load(folder / "mnist.npz") as digits:
            order = np.random.default_rng(0).permutation(len(digits["y_train"]))
            X = digits["X_train"][order].astype(np.float32) / 255
            y = digits["y_train"][order]
        for name, normal in {"digit 1": y == 1, "digits 0–4": y <= 4}.items():
            rows, n_new = X[normal], 2000 if normal.sum() > 10_000 else 1000
            yield name, rows[n_new:], rows[:n_new], X[~normal][:2000]


def run_many(arguments: argparse.Namespace) -> None:
    """Compare detectors with many normal rows; "exact" is fitted to 4,000 of them."""
    table = []
    numbers = (1000, 2000, *((4000,) if arguments.full else ()))
    for name, train, rest, novel in large_sets(arguments.data):
        runs = {"exact, 4,000 rows": ours(train[:4000], rest, novel)}
        for number in numbers:
            result = ours(train, rest, novel, eigen_solver=Nystrom(number))
            runs[f"{number:,} landmarks"] = result
        for method in ("kNN", "LOF", "IForest"):
            runs[method] = theirs(CONTESTANTS[method], train, rest, novel)
        for method, result in runs.items():
            table.append({"set": name, "rows": len(train), "detector": method, **result})
            print({key: value if isinstance(value, str) else round(value, 4)
                   for key, value in table[-1].items()}, flush=True)  # fmt: skip
    _write(arguments, "novelty_many", {"table": table})


def _write(arguments: argparse.Namespace, name: str, result: dict[str, Any]) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parts = {
        "detection": run_detection,
        "drift": run_drift,
        "cost": run_cost,
        "many": run_many,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=list(parts), default=list(parts))
    parser.add_argument("--out", type=Path, default=Path("results/novelty"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--full", action="store_true", help="longer streams and more rows")
    arguments = parser.parse_args()
    # Small sets cannot resolve a rate of 1 %.
    warnings.filterwarnings("ignore", message="false_alarm_rate=")
    for name in arguments.parts:
        parts[name](arguments)


if __name__ == "__main__":
    main()
