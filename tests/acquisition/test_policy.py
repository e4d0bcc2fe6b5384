"""The effect of a probability of failure on a suggestion."""

from __future__ import annotations

import numpy as np
import pytest

import carbo
from carbo.acquisition.policy import Request, propose, remaining_rows
from carbo.numerics.types import Floats, Ints
from carbo.settings import DEFAULT
from carbo.space.row_space import row_keys
from carbo.surrogate.surrogate import Belief, Observations, Surrogate

SPACE = carbo.Space({f"x{i}": carbo.Binary() for i in range(6)})


def request(seed: int, acquisition: str) -> Request:
    """A request after random values at some points."""
    settings, rng = (
        DEFAULT.changed({"acquisition": acquisition, "burn_in": 5, "samples": 2}),
        np.random.default_rng(seed),
    )
    rows = rng.permutation(SPACE.all_rows())[:20]
    observations = Observations(rows, rng.normal(size=20))
    _, posterior = Surrogate(SPACE.rows, settings).advance(rng, Belief(), observations)
    best = rows[int(np.argmin(observations.values))]
    return Request(SPACE.rows, settings, posterior.model, set(row_keys(rows)), best, None)


@pytest.mark.parametrize("acquisition", ["ei", "ucb"])
def test_a_chance_of_success_multiplies_what_is_expected_of_a_row(acquisition: str) -> None:
    for seed in range(10):
        asked, log_success = request(seed, acquisition), -np.random.default_rng(seed).exponential(3.0, 64)

        def penalty(rows: Ints, log_success: Floats = log_success) -> Floats:
            return np.asarray(log_success[rows @ (2 ** np.arange(6))])

        left = remaining_rows(asked)
        gain = np.exp(asked.objective.score(left))
        chosen = propose(np.random.default_rng(1), asked._replace(penalty=penalty))
        assert chosen.tolist() == left[np.argmax(gain * np.exp(penalty(left)))].tolist()
