"""
Denoising of recorded motion
============================

The poses of a moving body lie near a low-dimensional manifold. Noisy joint positions can be
denoised by projecting every frame on the kernel components of all frames (Günter et al. 2006,
section 5.4). The motion in this example is synthetic; :func:`ikpca_papers.mocap.read_motion` reads
recordings, and ``ikpca denoise walk.npy`` denoises a table of joint positions.
"""

import numpy as np

from ikpca.applications import denoise_motion, motion_settings
from ikpca_papers.figures import stick_figures
from ikpca_papers.mocap import body_centered, synthetic_walker, with_noise

walk = body_centered(synthetic_walker(frames=360))
noisy = with_noise(walk, 0.05, seed=0)
print(motion_settings(noisy.positions))

# %%
# The kernel width and the number of components are estimated from the noisy frames. Differences
# between consecutive frames that are too fast for a body are noise.

cleaned = walk.with_positions(denoise_motion(noisy.positions))


def error(motion):
    return np.mean(np.square(motion.positions - walk.positions))


print(f"squared error reduced by {1 - error(cleaned) / error(noisy):.0%}")

# %%
# Poses with 5 cm of noise on every joint, before and after denoising; the true pose is gray.

figure = stick_figures({"clean": walk, "noisy": noisy, "denoised": cleaned})
