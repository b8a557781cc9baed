"""Validation of constructor parameters, kernels and training rows."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import validate_data

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.gains import Gain
from ikpca.gram import LazyRows, read_budget, tile_slices
from ikpca.kernels import RADIAL_NAMES, Kernel, make_kernel, one_norm_distances
from ikpca.preimages import PREIMAGE_NAMES, PreimageMethod
from ikpca.solvers import METHODS

#: scikit-learn's names of iterative solvers are accepted for krylov.
KRYLOV_NAMES = ("krylov", "arpack", "randomized")
SOLVERS = ("auto", "dense", *KRYLOV_NAMES, *METHODS)
FLOAT_DTYPES = (np.float64, np.float32)
#: Number of rows drawn for the median of distances.
_MEDIAN_ROWS = 1000


def check_number(
    name: str,
    value: Any,
    rule: str,
    remedy: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    integer: bool = False,
) -> None:
    """Raise an error unless the value is a number of the right type in its interval."""
    kind = Integral if integer else Real
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise invalid_parameter(name, value, rule, remedy)
    number = float(value)
    if not np.isfinite(number) or number < low or number > high or (open_low and number == low):
        raise invalid_parameter(name, value, rule, remedy)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise an error unless the value is one of the choices."""
    if not isinstance(value, str | bool | np.bool_ | None) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise invalid_parameter(name, value, "is unknown", f"choose one of {listed}")


def check_gain(gain: Any) -> None:
    """Raise an error unless the gain is "auto", a positive number or a gain object."""
    if isinstance(gain, Gain) or (isinstance(gain, str) and gain == "auto"):
        return
    check_number(
        "gain", gain, "must be 'auto', a positive number or a gain object", "pass gain='auto'",
        low=0, open_low=True,
    )  # fmt: skip


def check_init(init: Any, names: Collection[str], shape: tuple[int, int]) -> Any:
    """Validate an initialization; return a name unchanged, or a copy of an array."""
    if isinstance(init, str):
        check_choice("init", init, names)
        return init
    try:
        array = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid_parameter(
            "init", init, "is not an array of numbers", f"choose one of {names}"
        ) from None
    if array.shape != shape:
        raise invalid_parameter(
            "init",
            f"array of shape {array.shape}",
            f"must have shape {shape}",
            "one row per component",
        )
    if not np.isfinite(array).all():
        raise invalid_parameter("init", "array", "holds NaN or infinite values", "replace them")
    return array


def is_auto(value: Any) -> bool:
    """Return True for "auto"; an array must not be compared with a string."""
    return isinstance(value, str) and value == "auto"


def check_runtime_parameters(model: Any) -> None:
    """Validate ``n_jobs`` and ``verbose``."""
    if model.n_jobs is not None:
        check_number(
            "n_jobs", model.n_jobs, "must be an integer or None", "pass None", integer=True
        )
        if model.n_jobs == 0:
            raise invalid_parameter(
                "n_jobs", 0, "must not be zero", "pass None, a number of threads, or -1"
            )
    if not isinstance(model.verbose, bool):
        check_number(
            "verbose", model.verbose, "must be 0, 1 or more", "pass 0 or 1", low=0, integer=True
        )


def draw_seed(random_state: Any) -> int:
    """Draw an integer seed from ``random_state``."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def is_fraction(n_components: Any) -> bool:
    """Return True if ``n_components`` is a fraction of the variance."""
    return isinstance(n_components, Real) and not isinstance(n_components, Integral)


def check_kernel_pca(model: Any) -> None:
    """Validate the parameters of ``KernelPCA`` that do not depend on the data."""
    _check_components(model)
    check_kernel_parameters(model)
    check_number("alpha", model.alpha, "must not be negative", "pass 1.0", low=0)
    check_preimage_name(model.preimage, PREIMAGE_NAMES)
    _check_stopping(model)
    _check_hebbian(model)
    read_budget(model.max_memory)
    flags = (
        "fit_inverse_transform",
        "remove_zero_eig",
        "copy_X",
        "rayleigh_ritz",
        "whiten",
        "warm_start",
    )
    for flag in flags:
        check_choice(flag, getattr(model, flag), (True, False))
    check_runtime_parameters(model)


def _check_components(model: Any) -> None:
    wanted, solver = model.n_components, model.eigen_solver
    check_choice("eigen_solver", solver, SOLVERS)
    if wanted is not None and not is_fraction(wanted):
        check_number(
            "n_components", wanted, "must be a positive integer, a fraction in (0, 1) or None",
            "pass how many components you want", low=1, integer=True,
        )  # fmt: skip
    if is_fraction(wanted) and not 0 < wanted < 1:
        raise invalid_parameter(
            "n_components",
            wanted,
            "as a fraction of the variance must lie in (0, 1)",
            "pass an integer for a number of components",
        )
    if wanted is None and solver == "krylov":
        raise invalid_parameter(
            "n_components",
            wanted,
            "eigen_solver='krylov' needs an integer or a fraction",
            "pass an integer, a fraction in (0, 1), or eigen_solver='dense'",
        )
    if solver in METHODS and (wanted is None or is_fraction(wanted)):
        raise invalid_parameter(
            "n_components",
            wanted,
            f"eigen_solver={solver!r} needs an integer",
            "pass an integer, or eigen_solver='dense'",
        )


def check_kernel_parameters(model: Any) -> None:
    """Validate the parameters of kernels."""
    gamma, kernel = model.gamma, model.kernel
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "median"))
        if gamma == "median" and kernel not in RADIAL_NAMES:
            raise invalid_parameter(
                "gamma",
                gamma,
                f"needs a kernel of a distance, not kernel={kernel!r}",
                "pass a number or 'scale'",
            )
    elif gamma is not None:
        check_number(
            "gamma", gamma, "must not be negative", "pass None, 'scale' or 'median'", low=0
        )
    check_number("degree", model.degree, "must not be negative", "pass 2 or 3", low=0)
    check_number("coef0", model.coef0, "must be a finite number", "pass 1")
    params = model.kernel_params
    if params is not None and not isinstance(params, dict):
        raise invalid_parameter(
            "kernel_params", params, "must be a dict or None", "pass keyword arguments"
        )


def check_preimage_name(preimage: Any, names: Collection[str]) -> None:
    """Raise an error unless ``preimage`` is a method object or one of the names."""
    if isinstance(preimage, PreimageMethod) and not isinstance(preimage, type):
        return
    if not isinstance(preimage, str) or preimage not in names:
        raise invalid_parameter(
            "preimage",
            preimage,
            "is not a pre-image method",
            f"choose one of {', '.join(map(repr, names))}",
        )


def _check_stopping(model: Any) -> None:
    check_number("tol", model.tol, "must not be negative", "pass 0 for machine precision", low=0)
    if model.change_tol is not None:
        check_number("change_tol", model.change_tol, "must not be negative", "pass None", low=0)
    if model.max_iter is not None:
        check_number("max_iter", model.max_iter, "must be a positive integer or None", "pass None",
                     low=1, integer=True)  # fmt: skip
    if not is_auto(model.iterated_power):
        check_number("iterated_power", model.iterated_power, "must be 'auto' or an integer",
                     "pass 'auto'", low=0, integer=True)  # fmt: skip


def _check_hebbian(model: Any) -> None:
    check_gain(model.gain)
    if not is_auto(model.meta_gain):
        check_number("meta_gain", model.meta_gain, "must be 'auto' or not negative",
                     "pass meta_gain='auto'", low=0)  # fmt: skip
    check_number("meta_decay", model.meta_decay, "must lie in [0, 1]", "the paper uses 0.99",
                 low=0, high=1)  # fmt: skip
    check_number("log_gain_init", model.log_gain_init, "must be finite", "pass 0.0")
    check_choice("clock", model.clock, ("pattern", "pass"))
    if not is_auto(model.block_size):
        check_number("block_size", model.block_size, "must be 'auto' or a positive integer",
                     "pass 'auto'", low=1, integer=True)  # fmt: skip


def resolve_gamma(gamma: Any, X: Any, kernel: Any, seed: int) -> float:
    """Return γ: None is 1/N, "scale" 1/(N·variance), "median" from the median distance."""
    if gamma is None:
        return 1.0 / X.shape[1]
    if not isinstance(gamma, str):
        return float(gamma)
    value = _gamma_scale(X) if gamma == "scale" else _gamma_median(X, kernel, seed)
    if not np.isfinite(value):
        raise invalid_parameter(
            "gamma",
            gamma,
            "needs rows that differ, and all rows are equal",
            "pass a number, or more rows",
        )
    return value


def _gamma_scale(X: Any) -> float:
    mean, squares = _moments(X)
    variance = squares - mean * mean
    return 1.0 / (X.shape[1] * variance) if variance > 0 else np.inf


def _moments(X: Any) -> tuple[float, float]:
    """Return the means of all entries and of their squares, by tiles as X may be on disk."""
    if sparse.issparse(X):
        return float(X.mean()), float(X.multiply(X).mean())
    parts = [(len(rows) / len(X), rows.mean(), np.mean(np.square(rows)))
             for rows in (X[part] for part in tile_slices(len(X)))]  # fmt: skip
    return (
        float(sum(share * float(mean) for share, mean, _ in parts)),
        float(sum(share * float(square) for share, _, square in parts)),
    )


def _gamma_median(X: Any, kernel: Any, seed: int) -> float:
    """Return γ of a Gaussian with σ = median distance, or of a Laplacian with the 1-norm's."""
    n_samples = X.shape[0]
    if n_samples < 2:
        return np.inf
    chosen = np.arange(n_samples)
    if n_samples > _MEDIAN_ROWS:
        chosen = np.random.default_rng([seed, 2]).choice(n_samples, _MEDIAN_ROWS, replace=False)
    rows = X[chosen]
    distances = (one_norm_distances if kernel == "laplacian" else euclidean_distances)(rows, rows)
    median = float(np.median(distances[np.triu_indices_from(distances, k=1)]))
    if median == 0:
        return np.inf
    return 1 / median if kernel == "laplacian" else 1 / (2 * median * median)


def is_precomputed(model: Any) -> bool:
    """Return True if X holds kernel values."""
    return is_named(model.kernel, "precomputed")


def is_named(value: Any, *names: str) -> bool:
    """Return True if a parameter, which may be an object, is one of the names."""
    return isinstance(value, str) and value in names


def learns_ridge(model: Any) -> bool:
    """Return True if the fit learns a kernel ridge regression to the rows."""
    return bool(model.fit_inverse_transform or is_named(model.preimage, "ridge"))


def needs_dense_rows(model: Any) -> bool:
    """Return True if pre-images are requested, which need dense rows in memory."""
    return learns_ridge(model) or not is_named(model.preimage, "auto")


def validate_training_rows(model: Any, X: Any) -> Any:
    """Return X as float32 or float64, dense or CSR; check its shape and values."""
    if learns_ridge(model) and is_precomputed(model):
        raise InvalidInput(
            "Cannot fit_inverse_transform with a precomputed kernel: the regression needs the "
            "training rows; pass rows and a kernel."
        )
    if is_lazy(X):
        return _validate_lazy_rows(model, X)
    if isinstance(X, np.memmap) and X.dtype not in FLOAT_DTYPES:
        raise InvalidInput(
            f"X is a memory map of {X.dtype}: only float32 and float64 are read in place; convert "
            "the file, or pass X[:] to load it."
        )
    X = validate_data(
        model,
        X,
        accept_sparse=False if needs_dense_rows(model) else "csr",
        dtype=FLOAT_DTYPES,
        # A memory map may be larger than the memory.
        copy=model.copy_X and not isinstance(X, np.memmap),
        ensure_min_samples=2,
    )
    if is_precomputed(model) and X.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"X has shape {X.shape}: a precomputed kernel matrix must be square; pass rows with "
            "another kernel, or the kernel values of all pairs of training rows."
        )
    return X


def is_lazy(X: Any) -> bool:
    """Return True for a chunked array on disk, such as a Zarr array."""
    return not isinstance(X, np.ndarray) and all(hasattr(X, name) for name in ("chunks", "oindex"))


def _validate_lazy_rows(model: Any, X: Any) -> LazyRows:
    """Apply the checks of ``validate_data``, one tile of rows at a time."""
    if is_precomputed(model) or needs_dense_rows(model) or model.gamma == "scale":
        raise InvalidInput(
            f"X is a {type(X).__name__} and is read in tiles: a precomputed kernel, preimage, "
            "fit_inverse_transform and gamma='scale' need rows in memory; pass X[:]."
        )
    if len(X.shape) != 2 or np.dtype(X.dtype) not in FLOAT_DTYPES:
        raise InvalidInput(
            f"X is a {type(X).__name__} of shape {X.shape} and type {X.dtype}: only two-dimensional"
            " float32 and float64 are read in place; convert it."
        )
    if X.shape[0] < 2:
        raise InvalidInput(
            f"X has {X.shape[0]} sample(s): at least two are needed; pass more rows."
        )
    rows = LazyRows(X)
    for part in tile_slices(rows.shape[0]):
        assert_all_finite(rows[part], input_name="X")
    model.n_features_in_ = rows.shape[1]
    return rows


def kernel_from_parameters(model: Any, gamma: float) -> Kernel:
    """Return the kernel object of the parameters."""
    return make_kernel(
        model.kernel,
        gamma=gamma,
        degree=model.degree,
        coef0=model.coef0,
        params=model.kernel_params,
    )


def resolve_kernel(model: Any, X: Any) -> Kernel | None:
    """Return the kernel object, or None for a precomputed matrix."""
    if is_precomputed(model):
        return None
    kernel = kernel_from_parameters(model, model.gamma_)
    if sparse.issparse(X) and not kernel.takes_sparse:
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "a kernel of one pair does not support sparse rows",
            "pass X.toarray(), or a vectorized kernel",
        )
    return kernel


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for tiles; None uses as many as BLAS."""
    return _blas_threads() if n_jobs is None else _effective_n_jobs(n_jobs)


def limit_threads(n_jobs: int | None) -> AbstractContextManager[object]:
    """Limit BLAS to ``n_jobs`` threads; None does not limit it, −1 uses every core."""
    if n_jobs is None:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(_effective_n_jobs(n_jobs), user_api="blas")


def single_thread() -> AbstractContextManager[object]:
    """Limit BLAS and OpenMP to one thread, as the last bits depend on the number of threads."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1)
    return limited


@cache
def _controller() -> Any:
    """Return the cached controller; searching the libraries takes longer than learning a row."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _effective_n_jobs(n_jobs: int) -> int:
    """Return the number of threads; −1 means all cores, −2 all but one, and so on."""
    from joblib import cpu_count

    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def _blas_threads() -> int:
    from threadpoolctl import threadpool_info

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(counts, default=1)
