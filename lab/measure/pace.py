"""The time that methods take for a suggestion on the same data, measured in turns within one process.

The data are those of `growth`: a trail of rows like that of an optimiser, on binary variables. Every method gets all of
them and makes one suggestion that does not count, in which chains burn in. Then each in turn makes a suggestion and is
told its value. Seconds are processor seconds of one thread; other work on the machine affects all methods alike. With
doubt = 0 every suggestion of the `default` preset is a whole search.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from carbo.numerics.types import Floats, Ints
from lab.measure import growth
from lab.methods import METHODS, Method, Strategy, method
from lab.runs.machine import machine, measured_apart, revision, versions


def run(names: Sequence[str], variables: int, observations: int, repeats: int) -> dict[str, Any]:
    """The report, measured in a new process whose BLAS has one thread. SettingsError for an unknown method."""
    for name in names:
        method(name)
    request = {"names": names, "variables": variables, "observations": observations, "repeats": repeats}
    return measured_apart("lab.measure.pace", request)


def measure(names: Sequence[str], variables: int, observations: int, repeats: int) -> dict[str, Any]:
    """The report, measured in this process: the median of each method, and its ratio to that of the first one."""
    import numpy as np

    rng = np.random.default_rng(0)
    point = growth.Point("observations", observations, variables=variables, observations=observations)
    space = growth.space_of(point)
    function = growth.landscape(rng, space)
    rows, values = growth.trail(rng, space, function, observations)
    methods: dict[str, Method] = {name: method(name) for name in names}
    runs = {name: each.start(space, 1, observations + repeats + 1) for name, each in methods.items()}
    for each in runs.values():
        for row, value in zip(rows, values, strict=True):
            each.tell(row, float(value))
        _suggestion(each, function)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats):
        print(f"suggestion {turn + 1} of {repeats} ...", file=sys.stderr, flush=True)
        for name, each in runs.items():
            seconds[name].append(_suggestion(each, function))
    medians = {name: float(np.median(each)) for name, each in seconds.items()}
    return {
        "name": point.name,
        "methods": {
            name: {"title": METHODS[name.partition(":")[0]].title, "median": medians[name],
                   "times_the_first": medians[name] / medians[names[0]], "seconds": seconds[name]}
            for name in names
        },
        "revision": revision(),
        "machine": machine(),
        "versions": versions(package for each in methods.values() for package in each.packages),
    }  # fmt: skip


def _suggestion(strategy: Strategy, function: Callable[[Ints], Floats]) -> float:
    """Processor seconds of one suggestion; the method is then told its value."""
    begin = time.process_time()
    row = strategy.ask()
    seconds = time.process_time() - begin
    strategy.tell(row, float(function(row[None])[0]))
    return seconds


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.stdin.read()))))
