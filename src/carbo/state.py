"""The parts of an optimiser's state as JSON values, and back. Damage raises ValueError, TypeError or KeyError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from carbo.inference import chain as chains
from carbo.inference.chain import Chain, Tuning
from carbo.inference.data import Hyper, Model
from carbo.inference.selection import Shape
from carbo.kernels.base import Scales
from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.surrogate.surrogate import Belief, Surrogate


def belief_state(belief: Belief) -> dict[str, Any]:
    """The belief as JSON values; `belief_from` restores it."""
    return {
        "chain": _chain_state(belief.chain),
        "failure_chain": _chain_state(belief.failure_chain),
        "shape": list(belief.shape),
    }


def belief_from(state: Mapping[str, Any], surrogate: Surrogate) -> Belief:
    """The belief of a saved state, checked against the models of the surrogate."""
    shape = _shape_from(state["shape"])
    chain = _chain_from(state["chain"], surrogate.models.of(shape))
    return Belief(chain, _chain_from(state["failure_chain"], surrogate.failure_model), shape)


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state, with its 128-bit integers as text: every JSON reader keeps text exactly."""
    state = dict(rng.bit_generator.state)
    return {**state, "state": {k: str(v) for k, v in state["state"].items()}}


def generator_from(state: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `generator_state`: the value for `rng.bit_generator.state`."""
    return {**state, "state": {k: int(v) for k, v in state["state"].items()}}


def rows_from(space: Space, rows: Any) -> list[Ints]:
    """Rows of a saved state, checked against the space."""
    array = np.array(rows).reshape(len(rows), space.dim)
    if array.size and (array.dtype.kind != "i" or np.any(array < 0) or np.any(array >= space.sizes)):
        raise ValueError("a row is outside the space")
    return list(array.astype(np.intp))


def _chain_state(chain: Chain | None) -> dict[str, Any] | None:
    if chain is None:
        return None
    hyper, tuning = chain
    return {
        "mean": hyper.mean,
        "log_noise": hyper.log_noise,
        "log_w": hyper.log_w.tolist(),
        "log_beta": hyper.scales.log_beta.tolist(),
        "log_relevance": hyper.scales.log_relevance.tolist(),
        "tuning": None if tuning is None else [tuning.step, tuning.centre.tolist(), tuning.variance.tolist()],
    }


def _chain_from(state: Mapping[str, Any] | None, model: Model) -> Chain | None:
    if state is None:
        return None
    sizes = [len(state[key]) for key in ("log_w", "log_beta", "log_relevance")]
    if sizes != [model.kernel.size, len(model.kernel.spectra), len(model.kernel.spectra)]:
        raise ValueError("the chain is of another kernel; restore the state with its own settings")
    log_w, *scales = (np.array(state[key], dtype=np.float64) for key in ("log_w", "log_beta", "log_relevance"))
    hyper = Hyper(float(state["mean"]), float(state["log_noise"]), log_w, Scales(*scales))
    if state["tuning"] is None:
        return Chain(hyper)
    step, centre, variance = (np.array(value, dtype=np.float64) for value in state["tuning"])
    size = chains.layout_of(model.kernel).size
    if centre.shape != (size,) or variance.shape != (size,) or not np.all(variance > 0) or not step > 0:
        raise ValueError("the chain's tuning is of another kernel")
    return Chain(hyper, Tuning(float(step), centre, variance))


def _shape_from(state: Sequence[Any]) -> Shape:
    multiple, due, adjacent = state
    if not isinstance(adjacent, bool):
        raise ValueError(f"expected True or False as 'adjacent', got {adjacent!r}")
    if multiple is not None and not float(multiple) > 0:
        raise ValueError(f"expected a multiple of the warp > 0, got {multiple!r}")
    return Shape(None if multiple is None else float(multiple), int(due), adjacent)
