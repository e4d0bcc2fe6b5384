"""carbo inside other packages: an Optuna sampler and a Ray Tune search algorithm."""
