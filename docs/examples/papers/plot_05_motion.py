"""
Cleaning recorded motion
========================

A body moves along few paths: joints that are recorded with errors can be cleaned by projecting
every frame on the kernel components of all frames (Günter et al. 2006, section 5.4). The walker
here is synthetic; :func:`ikpca_papers.mocap.read_motion` reads recordings, and ``ikpca denoise
walk.npy`` denoises a table of joint positions.
"""

import numpy as np

from ikpca.applications import denoise_motion, motion_settings
from ikpca_papers.figures import stick_figures
from ikpca_papers.mocap import body_centred, synthetic_walker, with_noise

walk = body_centred(synthetic_walker(frames=360))
noisy = with_noise(walk, 0.05, seed=0)
print(motion_settings(noisy.positions))

# %%
# Width of the kernel and number of components come from the noisy frames alone: what differs from
# frame to frame faster than a body can move is noise.

cleaned = walk.with_positions(denoise_motion(noisy.positions))


def error(motion):
    return np.mean(np.square(motion.positions - walk.positions))


print(f"squared error falls by {1 - error(cleaned) / error(noisy):.0%}")

# %%
# Five centimetres of noise on every joint, and what is left; the true pose is the shadow.


figure = stick_figures({"clean": walk, "noisy": noisy, "denoised": cleaned})
