"""Elementary symmetric polynomials: values by recursion and from power sums, and derivatives. Notation as in `base`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carbo.numerics.types import Floats, Ints


def elementary_symmetric(r: Floats, highest: int) -> Floats:
    """(e_1(r), ..., e_highest(r)) for r (d,) >= 0. e_q sums r_i e_{q-1}(values before i), so nothing cancels."""
    e, before = np.empty(highest), np.ones(len(r))
    for q in range(highest):
        upto = np.cumsum(r * before)
        e[q] = upto[-1] if len(r) else 0.0
        before = np.concatenate([[0.0], upto[:-1]])
    return e


def newton(p: Sequence[Floats]) -> list[Floats]:
    """e_1..e_Q from power sums p_1..p_Q: q e_q = sum_s (-1)^(s-1) e_{q-s} p_s (Newton's identities)."""
    e: list[Floats] = []
    for q in range(1, len(p) + 1):
        total = p[q - 1] * (-1.0) ** (q - 1)
        for s in range(1, q):
            term = e[q - s - 1] * p[s - 1]
            total = total + term if s % 2 == 1 else total - term
        total /= q
        e.append(total)
    return e


def inverse_norms(norms: Floats) -> Floats:
    """1 / norms, and 0 where a norm is 0: an order above the number of variables has no part."""
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)


def norm_slopes(r: Floats, norms: Floats, share: Floats) -> Floats:
    """The part of the derivatives by log r (d,) that comes from the norms (Q,), which are the e_q(r).

    share (Q,) is the part of the value at each order. It falls as the norm of this order grows, and
    d e_q / d log r_i = r_i e_{q-1}(r without i).
    """
    without = np.empty((len(norms), len(r)))
    without[0] = 1.0
    for q in range(1, len(norms)):
        without[q] = np.maximum(norms[q - 1] - r * without[q - 1], 0.0)
    return np.asarray(-r * ((share * inverse_norms(norms)) @ without))


def slope_by_variable(c: Floats, a: Floats, e: list[Floats]) -> Floats:
    """d C / d a_i at each entry, sum_q c_q (e_{q-1} without i), from a = a_i and e_0..e_{Q-1}.

    If the e_q are weighted entry by entry, so is the result.
    """
    without = e[0]
    total = c[0] * without
    for q in range(1, len(c)):
        without = e[q] - a * without
        total += c[q] * without
    return np.asarray(total)


def affine_powers(sizes: Ints, highest: int) -> tuple[Floats, Floats]:
    """(line, level), each (highest + 1, len(sizes)): z^s = line_s z + level_s on complete graphs of these sizes."""
    line, level = np.zeros((highest + 1, len(sizes))), np.zeros((highest + 1, len(sizes)))
    level[0] = 1.0
    for s in range(highest):  # z (line z + level) with z^2 = ((m - 2) z + 1) / (m - 1)
        line[s + 1] = line[s] * (sizes - 2) / (sizes - 1) + level[s]
        level[s + 1] = line[s] / (sizes - 1)
    return line, level
