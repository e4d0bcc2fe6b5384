"""carbo demo: a made-up database with sixteen settings, tuned while the user watches."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import carbo
from carbo.cli.arguments import command, count
from carbo.settings import PRESETS
from carbo.space.space import Params

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from carbo.cli.arguments import Commands

EXAMPLES = """examples:
  carbo demo
  carbo demo --budget 100 --plot best.png
  carbo demo --preset paper --seed 3"""
SPACE = carbo.Space(
    {
        "page_kb": carbo.Ordinal([2, 4, 8, 16, 32]),
        "cache_mb": carbo.Ordinal([64, 128, 256, 512, 1024, 2048]),
        "workers": carbo.Integer(1, 12),
        "prefetch": carbo.Ordinal([0, 4, 16, 64]),
        "log_buffer_kb": carbo.Ordinal([32, 128, 512, 2048]),
        "planner": carbo.Categorical(["greedy", "dynamic", "genetic"]),
        "compression": carbo.Categorical(["none", "lz4", "zstd", "gzip"], graph=[[0, 1, 0, 0],
                                                                                 [1, 0, 2, 0],
                                                                                 [0, 2, 0, 2],
                                                                                 [0, 0, 2, 0]]),
        "index": carbo.Categorical(["btree", "hash", "lsm"]),
        "isolation": carbo.Categorical(["read", "snapshot", "serial"]),
        **{name: carbo.Binary() for name in ("fsync_batch", "huge_pages", "jit", "numa", "mmap", "bloom", "direct_io")},
    },
    constraint=lambda p: not (p["mmap"] and p["direct_io"]),  # the two exclude each other
)  # fmt: skip


def latency(p: Params) -> float | None:
    """Milliseconds per query; the settings interact. None if the machine runs out of memory."""
    if p["cache_mb"] * (1 + 0.25 * p["huge_pages"]) + 150 * p["workers"] > 2900:
        return None
    cost = 40.0 - 3.2 * np.log2(p["cache_mb"] / 64) + 0.35 * (p["workers"] - 7) ** 2
    cost += {"greedy": 4.0, "dynamic": 0.0, "genetic": 2.5 - 3.5 * p["jit"]}[p["planner"]]
    cost += {"none": 5.0, "lz4": 1.0, "zstd": 0.0, "gzip": 3.0}[p["compression"]] * (2 - p["page_kb"] / 32)
    cost += {"btree": 0.0, "hash": 1.5, "lsm": 4.0 - 7.0 * p["bloom"]}[p["index"]]
    cost += {"read": 0.0, "snapshot": 1.0, "serial": 6.0}[p["isolation"]] - 2.5 * p["fsync_batch"]
    cost += 1.2 * abs(np.log2(p["page_kb"] / 8)) * (1.5 - p["direct_io"]) - 2.0 * p["direct_io"] + 1.5 * p["mmap"]
    cost += 0.6 * abs(np.log2((p["prefetch"] + 1) / (17 if p["index"] == "btree" else 5)))
    return float(cost - (1.5 if p["numa"] and p["workers"] > 6 else 0.0))


def add(commands: Commands) -> None:
    """carbo demo and its options."""
    demo = command(
        commands,
        "demo",
        "tune a made-up database and show what was found",
        about="Tunes a made-up database in under a minute. Shows and plots what was found, and which settings matter.",
        examples=EXAMPLES,
    )
    demo.add_argument("--budget", type=count, default=60, help="number of evaluations (default 60)")
    demo.add_argument("--seed", type=int, default=0, help="same seed, same run (default 0)")
    demo.add_argument(
        "--preset", choices=sorted(PRESETS), default="default", help="settings of the engine (default: default)"
    )
    demo.add_argument("--plot", type=Path, default=Path("carbo-demo.png"), metavar="FILE",
                      help="where to write the plot (default carbo-demo.png)")  # fmt: skip
    demo.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    return run(arguments.budget, arguments.seed, arguments.preset, arguments.plot)


def run(budget: int, seed: int, preset: str, plot: Path) -> int:
    """Tune, show, write the plot; returns the exit code."""
    print(f"Tuning a made-up database: {SPACE.dim} knobs, {SPACE.cardinality:,} settings, one constraint,")
    print(f"some settings crash. {budget} evaluations with the {preset!r} preset.\n")
    began = time.perf_counter()
    settings = {"initial": min(10, budget)}
    result = carbo.minimize(latency, SPACE, budget, seed=seed, preset=preset, settings=settings,
                            callback=Progress(budget))  # fmt: skip
    print(f"\n{result.message} ({time.perf_counter() - began:.0f} s)")
    interrupted = 0 if result.nfev == budget else 130
    if not np.isfinite(result.fun):
        print("every setting tried has crashed; try a larger --budget")
        return interrupted
    crashed = int(np.isnan(result.func_vals).sum())
    print(f"best: {result.fun:.2f} ms a query; {crashed} of {result.nfev} settings crashed\n")
    for name, value in result.x.items():
        print(f"  {name:<14} {value}")
    print(f"\nwhich knobs matter\n{result.optimizer.relevance()}\n")
    draw(result, random_search(result.nfev, seed), plot)
    return interrupted


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line every ten evaluations."""

    def __init__(self, budget: int) -> None:
        self._budget, self._began, self._live = budget, time.perf_counter(), sys.stdout.isatty()

    def __call__(self, result: OptimizeResult) -> None:
        done, seconds = int(result.nfev), time.perf_counter() - self._began
        left = seconds / done * (self._budget - done)
        bar = "█" * (20 * done // self._budget)
        last = result.func_vals[-1]
        text = (f"{done:4d}/{self._budget} |{bar:<20}| best {result.fun:7.2f}  last "
                f"{'crashed' if np.isnan(last) else f'{last:7.2f}'}  {left:4.0f} s left")  # fmt: skip
        if self._live:
            print(f"\r{text}", end="\n" if done == self._budget else "", flush=True)
        elif done % 10 == 0 or done == self._budget:
            print(text, flush=True)


def random_search(budget: int, seed: int, runs: int = 20) -> Any:
    """Best values so far of random search, (runs, budget)."""
    rng = np.random.default_rng(seed)
    values = [[_number(latency(p)) for p in SPACE.decode_many(SPACE.random_rows(rng, budget))] for _ in range(runs)]
    return np.fmin.accumulate(np.array(values), axis=1)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def draw(result: OptimizeResult, chance: Any, path: Path) -> None:
    """Write the plot: best value so far, with random search for comparison, and relevances. DataError if that fails."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no plot: matplotlib is not installed; pip install 'carbo[plot]'")
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), width_ratios=(3, 2), layout="constrained")
    steps = np.arange(1, len(result.func_vals) + 1)
    left.plot(steps, np.fmin.accumulate(result.func_vals), color="C0", lw=2, label="carbo", zorder=3)
    left.plot(steps, result.func_vals, ".", color="C0", alpha=0.4, label="each evaluation")
    low, middle, high = np.nanquantile(chance, [0.1, 0.5, 0.9], axis=0)
    left.plot(steps, middle, color="0.5", label=f"random search, median of {len(chance)}")
    left.fill_between(steps, low, high, color="0.5", alpha=0.2, lw=0, label="its 10% to 90%")
    for step in steps[np.isnan(result.func_vals)]:
        left.axvline(step, color="C3", alpha=0.3, lw=1)
    left.set(xlabel="evaluations (red: crashed)", ylabel="milliseconds a query", title="Best setting so far")
    left.legend(frameon=False)
    shares = dict(reversed(list(result.optimizer.relevance().variables.items())[:12]))
    bars = np.array([s.mean for s in shares.values()])
    whiskers = np.abs(np.array([[s.mean - s.low, s.high - s.mean] for s in shares.values()])).T
    right.barh(list(shares), bars, xerr=whiskers, color="C0", ecolor="0.4")
    right.set(xlabel="share of the variation", title="Which knobs matter")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise carbo.DataError(f"plot {str(path)!r}: expected a file that can be written, got: {error}") from error
    finally:
        plt.close(figure)
    print(f"plot: {path}")
