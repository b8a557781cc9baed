"""
Denoising of recorded motion
============================

The poses of a moving body lie near a low-dimensional manifold. Noisy joint positions can be
denoised by projecting every frame on the kernel components of all frames (Günter et al. 2006,
section 5.4). The motion in this example is synthetic; :func:`ikpca_papers.mocap.read_asf_amc` reads
recordings, and ``ikpca-papers denoise walk.npy`` denoises a table of joint positions.
"""

import numpy as np

from ikpca_papers.applications import denoise_motion, motion_settings
from ikpca_papers.data import synthetic_walker
from ikpca_papers.figures import stick_figures

walker = synthetic_walker(frames=360)
walk = walker.positions - walker.positions[:, :1]
noisy = walk + np.random.default_rng(0).normal(scale=0.05, size=walk.shape)
print(motion_settings(noisy))

# %%
# The kernel width and the number of components are estimated from the noisy frames. Differences
# between consecutive frames that are too fast for a body are noise.

cleaned = denoise_motion(noisy)


def error(positions):
    return np.mean(np.square(positions - walk))


print(f"squared error reduced by {1 - error(cleaned) / error(noisy):.0%}")

# %%
# Poses with 5 cm of noise on every joint, before and after denoising; the true pose is gray.

takes = {"clean": walk, "noisy": noisy, "denoised": cleaned}
figure = stick_figures(takes, walker.parents, walker.frame_rate)
