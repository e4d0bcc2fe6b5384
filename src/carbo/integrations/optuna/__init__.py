"""carbo as an Optuna sampler."""
