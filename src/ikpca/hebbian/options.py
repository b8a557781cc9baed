"""A request, as users make it, and the settings that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ikpca.gains import Gain
from ikpca.hebbian.presets import automatic_gain, automatic_meta_rate, paper_gain
from ikpca.hebbian.settings import Settings, safety_for
from ikpca.hebbian.store import CoefficientStore, Floats
from ikpca.loop import Clock
from ikpca.spectra import LANDMARK_KINDS

__all__ = ["HebbianOptions"]


@dataclass(frozen=True)
class HebbianOptions:
    """Names as in ``KernelPCA``.

    Parameters
    ----------
    method : str
        "kha", "kha/t", "kha/et" or "kha-smd".
    gain : "auto", float or Gain
        η0 of the papers, or a gain object that replaces the method's own.
    meta_gain : "auto" or float
        µ.
    meta_decay, log_gain_init : float
        ξ and ρ0.
    clock : {"pattern", "pass"}
    init : "random", "sparse", "landmarks", "pivoted" or ndarray
        The start; an array is taken as it is, except that automatic gains orthonormalise it.
    rayleigh_ritz : bool
    block_size : "auto" or int
    max_iter : int
        Passes.
    """

    method: str
    gain: float | Gain | Literal["auto"] = "auto"
    meta_gain: float | Literal["auto"] = "auto"
    meta_decay: float = 0.99
    log_gain_init: float = 0.0
    clock: Literal["pattern", "pass"] = "pattern"
    init: Floats | str = "random"
    rayleigh_ritz: bool = True
    block_size: int | Literal["auto"] = "auto"
    max_iter: int = 50

    @property
    def automatic(self) -> bool:
        """Whether the library chooses the gain, and with it the safety rules."""
        return isinstance(self.gain, str)

    @property
    def from_landmarks(self) -> bool:
        """Whether the run starts from landmarks."""
        return isinstance(self.init, str) and self.init in LANDMARK_KINDS

    def has_companion(self) -> bool:
        """Whether rows B run beside A; known before the gain itself is."""
        if isinstance(self.gain, Gain):
            return hasattr(self.gain, "rate")
        return self.method == "kha-smd"

    def settings(
        self,
        store: CoefficientStore,
        n_components: int,
        seed: int,
        estimate: Literal["norms", "quotients"],
    ) -> Settings:
        """Fill in what depends on the data."""
        return Settings(
            n_components=n_components,
            gain=self._gain(store.mean_diagonal),
            clock=Clock(store.n_samples, self.clock),
            safety=safety_for(automatic=self.automatic),
            seed=seed,
            mean_diagonal=store.mean_diagonal,
            block_size=self._block_size(store.n_samples),
            rayleigh_ritz=self.rayleigh_ritz,
            estimate="quotients" if self.automatic else estimate,
        )

    def _gain(self, kappa: float) -> Gain:
        if isinstance(self.gain, Gain):
            return self.gain
        rate = 0.0 if isinstance(self.meta_gain, str) else self.meta_gain
        if isinstance(self.meta_gain, str) and self.has_companion():
            rate = automatic_meta_rate(kappa)
        if isinstance(self.gain, str):
            return automatic_gain(
                self.method,
                kappa,
                rate,
                self.meta_decay,
                self.log_gain_init,
                from_landmarks=self.from_landmarks,
            )
        return paper_gain(self.method, self.gain, rate, self.meta_decay, self.log_gain_init)

    def _block_size(self, n_samples: int) -> int:
        """Longer blocks pay when the product over l columns outweighs the sweep."""
        wanted = self.block_size
        if isinstance(wanted, str):
            wanted = 128 if n_samples < 20_000 else 256
        return min(wanted, n_samples)
