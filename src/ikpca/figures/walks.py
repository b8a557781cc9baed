"""Clean, noisy and denoised takes of a walk, from the arrays of a result."""

from __future__ import annotations

from ikpca.datasets import Motion, Skeleton
from ikpca.experiments.results_folder import Results

__all__ = ["takes_of"]


def takes_of(results: Results) -> dict[str, Motion]:
    """Takes by name; bones as they are in the first clean frame."""
    arrays = next(iter(results.arrays.values()))
    parents, clean = arrays["parents"], arrays["clean"]
    offsets = clean[0] - clean[0][parents.clip(0)]
    names = tuple(f"joint {number}" for number in range(len(parents)))
    skeleton = Skeleton(names, parents, offsets)
    rate = float(arrays["frame_rate"])
    return {
        name: Motion(skeleton, arrays[name], rate, 1.0) for name in ("clean", "noisy", "denoised")
    }
