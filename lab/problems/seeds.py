"""The seeds of the paper's 25 runs, and the points each run starts from.

All numbers are drawn from the Mersenne Twister `np.random.RandomState(seed)`, whose streams NumPy does not change:
these are the published runs, bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from carbo.errors import SettingsError
from carbo.numerics.types import Ints

RUNS, GROUP = 25, 5
"""The paper's runs; where a problem has several cases, GROUP cases with GROUP starts each."""
SEED_LIMIT = 10_000
"""All seeds of the paper lie below this."""
ISING, CONTAMINATION = "2019ICML_ISING", "2019ICML_CONTAMINATION"
"""Tags of problems with a (case, start) pair of seeds for each run."""
PEST_CONTROL, MAXSAT, BRANIN = "2019ICML_PESTCONTROL", "2019NeurIPS_MAXSAT", "2019ICML_BRANIN"
"""Tags of problems with one seed for each run. The paper's Branin seeds were not published: this tag is ours."""
NK, LABS, ASSIGNMENT, MIXED, KNAPSACK = "carbo_NK", "carbo_LABS", "carbo_ASSIGNMENT", "carbo_MIXED", "carbo_KNAPSACK"
SPARSE = "carbo_SPARSE"
"""Tags of the other families, with one seed for each run."""


class SeedPair(NamedTuple):
    """The seeds of a run: of its instance, and of its initial points."""

    case: int
    start: int


def check_run(run: int) -> int:
    """`run`, or SettingsError unless it is one of 1..RUNS."""
    if isinstance(run, bool) or not isinstance(run, int | np.integer) or not 1 <= run <= RUNS:
        raise SettingsError(f"run: expected a whole number from 1 to {RUNS}, got {run!r}; "
                            f"the paper has {RUNS} runs, counted from 1")  # fmt: skip
    return int(run)


def check_seed(seed: int) -> int:
    """`seed`, or SettingsError unless it is a whole number from 0 on."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"seed: expected a whole number from 0 on, got {seed!r}; for example 1")
    return int(seed)


def single_seeds(tag: str) -> list[int]:
    """The RUNS start seeds of a tag, ascending; run r takes the r-th."""
    return sorted(_tagged(tag).randint(0, SEED_LIMIT, RUNS).tolist())


def seed_pairs(tag: str) -> list[SeedPair]:
    """The RUNS pairs of a tag: cases ascending, starts ascending within a case.

    Of each group of six numbers the starts come first and the case last.
    """
    rng = _tagged(tag)
    groups = []
    for _ in range(GROUP):
        starts = rng.randint(0, SEED_LIMIT, GROUP).tolist()
        groups.append((int(rng.randint(0, SEED_LIMIT)), sorted(starts)))
    return [SeedPair(case, start) for case, starts in sorted(groups) for start in starts]


def single_seed(tag: str, run: int) -> int:
    """The start seed of a run."""
    return single_seeds(tag)[check_run(run) - 1]


def seed_pair(tag: str, run: int) -> SeedPair:
    """The case and start seeds of a run."""
    return seed_pairs(tag)[check_run(run) - 1]


def start_seed(tag: str, run: int) -> int:
    """The start seed of a run, whether the tag has pairs or single seeds."""
    return seed_pair(tag, run).start if tag in (ISING, CONTAMINATION) else single_seed(tag, run)


def instance_stream(tag: str, seed: int) -> np.random.RandomState:
    """The stream that a random instance is drawn from; each tag and seed has its own."""
    return np.random.RandomState([sum(map(ord, tag)), seed])


def start_rows(seed: int, sizes: Ints, n: int) -> Ints:
    """n rows (n, d), drawn row by row, variable by variable."""
    words = np.random.RandomState(seed).randint(0, 2**32, size=(n, len(sizes)), dtype=np.uint32)
    return np.asarray(words.astype(np.intp) % sizes)


def signs(rng: np.random.RandomState, n: int) -> NDArray[np.float32]:
    """(n,) of -1 and 1, from integers below 2, where 0 stands for -1."""
    words = rng.randint(0, 2**32, size=n, dtype=np.uint32)
    return np.where(words % 2 == 0, np.float32(-1), np.float32(1))


def uniforms(rng: np.random.RandomState, n: int) -> NDArray[np.float32]:
    """(n,) in [0, 1): the low 24 bits of a word, which float32 represents exactly."""
    words = rng.randint(0, 2**32, size=n, dtype=np.uint32)
    return (words & np.uint32(2**24 - 1)).astype(np.float32) / np.float32(2**24)


def _tagged(tag: str) -> np.random.RandomState:
    return np.random.RandomState(sum(map(ord, tag)))
