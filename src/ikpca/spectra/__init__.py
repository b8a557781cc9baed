"""What any solver may ask of a spectrum."""

from ikpca.spectra.positivity import nonnegative_eigenvalues
from ikpca.spectra.projector import Projector
from ikpca.spectra.rayleigh_ritz import rayleigh_ritz
from ikpca.spectra.signs import deterministic_signs

__all__ = ["Projector", "deterministic_signs", "nonnegative_eigenvalues", "rayleigh_ritz"]
