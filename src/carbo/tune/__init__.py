"""The tuner: optimises any external command, on any number of machines. Optuna stores the study."""
