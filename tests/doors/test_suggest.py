"""What a chance of failure does to a suggestion. For the knowledge gradient see `test_knowledge`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from carbo.acquisition import functions as acq
from carbo.acquisition import policy as suggest
from carbo.acquisition.policy import propose
from carbo.numerics.types import Floats, Ints
from tests.acquisition.test_knowledge_gradient import by, question
from tests.checks import assert_plausible, assert_rejected


def number(rows: Ints) -> Ints:
    """Of rows of six binary variables, 0 to 63."""
    return np.asarray(rows @ (2 ** np.arange(6)))


@pytest.mark.parametrize("acquisition", ["ei", "mes"])
def test_a_chance_of_success_multiplies_what_is_expected_of_a_row(acquisition: str) -> None:
    for seed in range(10):
        asked, log_success = question(seed, acquisition=acquisition), -np.random.default_rng(seed).exponential(3.0, 64)

        def penalty(rows: Ints, log_success: Floats = log_success) -> Floats:
            return np.asarray(log_success[number(rows)])

        left = suggest.remaining(asked)
        gain = np.exp(suggest.pointwise(np.random.default_rng(1), asked).score(left))
        chosen = propose(np.random.default_rng(1), asked._replace(penalty=penalty))
        assert chosen.tolist() == by(gain * np.exp(penalty(left)), left)


RISK = 0.3
"""The probability that a row of odd number succeeds; others always do."""


def risky(rows: Ints) -> Floats:
    return np.where(number(rows) % 2 == 1, np.log(RISK), 0.0)


def test_a_thompson_draw_is_one_of_success_too() -> None:
    """The row that is best in a draw of the function is suggested as often as it succeeds. The broken twin adds the
    logarithm of the probability to the draw, as if it were one of an expectation.
    """
    asked = question(0, acquisition="thompson")._replace(penalty=risky)
    left = suggest.remaining(asked)
    taken, twin = [], []
    for seed in range(600):
        draw = acq.thompson(np.random.default_rng(seed), asked.ensemble, left)
        best = int(np.argmax(draw))
        if risky(left[best : best + 1])[0] < 0.0:
            taken.append(propose(np.random.default_rng(seed), asked).tolist() == left[best].tolist())
            twin.append(int(np.argmax(draw + risky(left))) == best)
    assert len(taken) > 150  # about half of the rows are risky
    assert_plausible({"succeeds": stats.binomtest(sum(taken), len(taken), RISK).pvalue})
    assert_rejected({"added": stats.binomtest(sum(twin), len(twin), RISK).pvalue})


def test_where_no_row_succeeds_in_a_thompson_draw_the_likeliest_is_taken() -> None:
    asked = question(0, acquisition="thompson")
    asked = asked._replace(penalty=lambda rows: -500.0 - number(rows).astype(np.float64))
    left = suggest.remaining(asked)
    assert number(propose(np.random.default_rng(0), asked)) == number(left).min()
