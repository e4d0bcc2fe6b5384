"""The tuner: any external command optimised, on any number of machines. Optuna keeps the study.

study_file      the TOML file as frozen values; table, text and expression are what it is read with
arguments       the argument list of one point; command runs it, processes ends it, value reads its output
storage         where the study lives; agreement, whether file and study still agree; records, what it holds
sampler         the engine behind Optuna's interface; loop, the workers; display, what they show
"""
