"""Digests that tell one instance from another."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike


def digest(*numbers: ArrayLike) -> str:
    """Sixteen hexadecimal digits; the same for arrays that agree to nine decimals, NaN being equal to NaN."""
    found = hashlib.sha256()
    for each in numbers:
        rounded = np.round(np.asarray(each, dtype=np.float64), 9) + 0.0  # no negative zeros
        found.update(f"{rounded.shape} {rounded.tolist()}".encode())
    return found.hexdigest()[:16]
