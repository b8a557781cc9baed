"""scikit-learn classes: validate, choose, delegate."""

from ikpca.estimators.compressed import compress
from ikpca.estimators.drift import DriftSignal
from ikpca.estimators.hebbian_pca import HebbianPCA
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.online_kernel_pca import OnlineKernelPCA
from ikpca.estimators.online_stream import OnlineStream
from ikpca.estimators.rounds import RoundProgress
from ikpca.estimators.stream_keeping import StreamProgress
from ikpca.estimators.streaming import Stream
from ikpca.estimators.trail import Trail

__all__ = [
    "DriftSignal",
    "HebbianPCA",
    "IncrementalKernelPCA",
    "KernelPCA",
    "OnlineKernelPCA",
    "OnlineStream",
    "RoundProgress",
    "Stream",
    "StreamProgress",
    "Trail",
    "compress",
]
