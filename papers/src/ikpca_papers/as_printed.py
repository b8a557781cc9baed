"""Methods and settings of the papers, as printed.

The experiments take from here whatever a paper states. Settings that a paper leaves open are in the
spec files, which name them as open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.preimages import Gradient
from ikpca.solvers import KHA

# Günter, Schraudolph, Vishwanathan 2006.

#: ρ0 of KHA-SMD (algorithm 1).
LOG_GAIN_INIT = 1.0
#: Decay ξ of KHA-SMD, "set a priori" (section 5).
META_DECAY = 0.99
#: KHA-SMD that starts from the gains of KHA/et; not in the paper, shown beside it.
SMD_FROM_ZERO = "kha-smd, ρ0 = 0"


def paper_solver(method: str, n_components: int, n_samples: int, seed: int, **options: Any) -> KHA:
    """Return a solver of the papers: random start, no Rayleigh–Ritz step, no safety rule.

    A ~ N(0, 1/(rl)). KHA/t decays at every pattern; λ and the gains of KHA/et and KHA-SMD are
    determined once per pass (section 4). ρ0 = 1 for KHA-SMD, 0 for ``SMD_FROM_ZERO``.
    """
    if method == SMD_FROM_ZERO:
        return paper_solver("kha-smd", n_components, n_samples, seed, log_gain_init=0.0, **options)
    shape = (n_components, n_samples)
    start = np.random.default_rng(seed).normal(size=shape) / np.sqrt(n_components * n_samples)
    printed: dict[str, Any] = {"init": start, "rayleigh_ritz": False, "backoff": False}
    if method in ("kha/et", "kha-smd"):
        printed["clock"] = "pass"
    if method == "kha-smd":
        printed |= {"log_gain_init": LOG_GAIN_INIT, "meta_decay": META_DECAY}
    return KHA(method, **{**printed, **options})


# Kim, Franz, Schölkopf 2003.

#: Iterations for faces and for natural images (section 5).
FACE_PASSES, NATURAL_PASSES = 40, 120
#: σ for faces, for the components of patches and for enlarging photographs (figures 2, 4, 5). The
#: unit of the pixels is not given: the specs state how it was chosen.
FACE_SIGMA, COMPONENT_SIGMA, PHOTOGRAPH_SIGMA = 1.0, 40.0, 0.5
#: Gradient descent from the pre-image by MDS (section 4.2); the tolerance is below a gray level.
KIM_PREIMAGE = Gradient(tol=1e-4, start="mds")


def printed_online(gain: float, init: Any = "random", method: str = "kha") -> dict[str, Any]:
    """Return settings of online KHA (appendix A): random points, a gain, all rows kept."""
    solver = KHA(method, gain=gain, init=init, rayleigh_ritz=False)
    return {"eigen_solver": solver, "max_basis_rows": None}
