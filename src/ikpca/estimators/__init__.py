"""Estimators with scikit-learn's interface."""

from ikpca.estimators.checkpoint import Checkpoint
from ikpca.estimators.compression import compress
from ikpca.estimators.hebbian_pca import HebbianPCA
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.novelty_detector import NoveltyDetector
from ikpca.estimators.online_kernel_pca import OnlineKernelPCA
from ikpca.estimators.spectral_clustering import KernelSpectralClustering
from ikpca.estimators.stream_base import DriftSignal

__all__ = [
    "Checkpoint",
    "DriftSignal",
    "HebbianPCA",
    "IncrementalKernelPCA",
    "KernelPCA",
    "KernelSpectralClustering",
    "NoveltyDetector",
    "OnlineKernelPCA",
    "compress",
]
