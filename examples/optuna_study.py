"""An Optuna study with carbo's sampler: a category graph, a constraint, failures, and which knobs matter.

Needs Optuna: pip install 'carbo[tune]'. Takes some seconds.
"""

from __future__ import annotations

import optuna

import carbo

# Engines that share code are alike: a trial of one teaches the model about the other. Larger weights: more alike.
ENGINES = ["btree", "btree-compressed", "log", "log-compressed"]
ALIKE = [
    [0, 3, 1, 0],
    [3, 0, 0, 1],
    [1, 0, 0, 3],
    [0, 1, 3, 0],
]


def milliseconds(trial: optuna.Trial) -> float:
    """The time of a made-up database; yours is slow and noisy."""
    engine = trial.suggest_categorical("engine", ENGINES)
    cache = trial.suggest_int("cache_mb", 64, 1024, log=True)
    readers = trial.suggest_int("readers", 1, 16)
    mapped = trial.suggest_categorical("mmap", [False, True])
    direct = trial.suggest_categorical("direct_io", [False, True])
    if cache * readers > 8_000:
        raise MemoryError  # a failed trial: the model learns to stay away
    time = 40.0 + 12.0 * (engine.startswith("btree")) - 5.0 * engine.endswith("compressed")
    time += 600.0 / cache + 0.4 * (readers - 6) ** 2 - 8.0 * mapped + 2.0 * direct
    return time


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = carbo.CarboSampler(
        graphs={"engine": ALIKE},
        constraint=lambda params: not (params["mmap"] and params["direct_io"]),
        n_startup_trials=10,
        seed=0,
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(milliseconds, n_trials=16, catch=MemoryError)
    print(f"best of {len(study.trials)} trials: {study.best_value:.1f} ms with {study.best_params}")
    print(f"failed: {sum(t.state == optuna.trial.TrialState.FAIL for t in study.trials)}")
    print(sampler.optimizer(study).relevance())


if __name__ == "__main__":
    main()
