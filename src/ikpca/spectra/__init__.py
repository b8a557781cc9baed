"""What any solver may ask of a spectrum."""

from ikpca.spectra.certificate import Certificate, certify
from ikpca.spectra.inner import inner
from ikpca.spectra.landmarks import (
    DIRECTIONS_PER_COMPONENT,
    LANDMARK_KINDS,
    LandmarkStart,
    choose_landmarks,
    landmark_start,
    pivoted_landmarks,
    uniform_landmarks,
)
from ikpca.spectra.positivity import nonnegative_eigenvalues
from ikpca.spectra.projector import Projector
from ikpca.spectra.rayleigh_ritz import rayleigh_ritz
from ikpca.spectra.signs import deterministic_signs

__all__ = [
    "DIRECTIONS_PER_COMPONENT",
    "LANDMARK_KINDS",
    "Certificate",
    "LandmarkStart",
    "Projector",
    "certify",
    "choose_landmarks",
    "deterministic_signs",
    "inner",
    "landmark_start",
    "nonnegative_eigenvalues",
    "pivoted_landmarks",
    "rayleigh_ritz",
    "uniform_landmarks",
]
