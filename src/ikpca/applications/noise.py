"""How much noise an image holds, from the image alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ikpca.applications.patches import image_array
from ikpca.errors import InvalidInput

__all__ = ["estimate_noise"]

#: Median of |x| for a standard normal x.
_NORMAL_MEDIAN = 0.674489750196082


def estimate_noise(image: ArrayLike) -> float:
    """Standard deviation of the noise of an image, in the unit of its pixels.

    Second differences in both directions cancel all that is linear across three pixels; what they
    leave is noise nearly everywhere, and its median does not see the edges that are left too.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
        Three pixels or more in each direction. Channels are taken to be equally noisy.

    Returns
    -------
    float
        Zero where most of the image is without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import estimate_noise
    >>> ramp = np.add.outer(np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    >>> noisy = ramp + np.random.default_rng(0).normal(scale=0.1, size=ramp.shape)
    >>> round(estimate_noise(noisy), 2)
    0.1
    """
    array = image_array(image).astype(np.float64)
    if min(array.shape[:2]) < 3:
        raise InvalidInput(
            f"image has shape {array.shape}: noise is estimated from three pixels in each "
            "direction; pass noise, its standard deviation."
        )
    if not np.isfinite(array).all():
        raise InvalidInput("image holds NaN or infinite values: replace them.")
    differences = np.diff(np.diff(array, 2, axis=0), 2, axis=1)
    # The squares of the weights (1, −2, 1) ⊗ (1, −2, 1) sum to 36.
    return float(np.median(np.abs(differences)) / (6 * _NORMAL_MEDIAN))
