from __future__ import annotations

import optuna

import optunahub


def objective(trial: optuna.Trial) -> float:
    compiler = trial.suggest_categorical("compiler", ["gcc", "g++", "icc"])
    level = trial.suggest_int("level", 0, 3)
    inline = trial.suggest_categorical("inline", [False, True])
    unroll = trial.suggest_categorical("unroll", [False, True])
    return abs(level - 2) + (compiler == "icc") - 0.5 * unroll + 0.3 * (inline and unroll)


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/carbo")
    sampler = module.CarboSampler(
        graphs={"compiler": [[0, 2, 1], [2, 0, 1], [1, 1, 0]]},  # gcc and g++ are alike
        constraint=lambda params: params["level"] > 0 or not params["unroll"],
        seed=0,
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=25)
    print(study.best_params, study.best_value)  # noqa: T201
