"""scikit-learn's handwritten digits, 8x8: images that need no download, for a search of minutes.

Trained on 500 images, the best cells still err on one or two of a hundred. With twice as many images one small
convolution is as good, and there is little to search for.
"""

from __future__ import annotations

from carbo.errors import SettingsError

from .shape import Images
from .training import Split, normalised, shuffled

IMAGES = Images(1, 8, 10)
TRAINING, VALIDATION = 500, 500
"""Numbers of images: the first and the last of the 1,797 shuffled ones."""


def digits() -> Split:
    """The split. SettingsError when scikit-learn is not installed."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SettingsError("digits: expected the package scikit-learn to be installed, got none; "
                            "pip install 'carbo[nas]'") from None  # fmt: skip
    pixels, labels = load_digits(return_X_y=True)
    order = shuffled(len(labels))
    first, last = order[:TRAINING], order[-VALIDATION:]
    images = (pixels / 16).reshape(-1, IMAGES.channels, IMAGES.side, IMAGES.side)
    train, validate = normalised(images[first], images[last])
    return Split(IMAGES, train, labels[first].astype("int64"), validate, labels[last].astype("int64"))
