"""The laboratory, which measures carbo against its rivals: `python -m lab`. It is no part of the installed package.

problems    functions to minimise: the paper's, random ones, and families of other kinds
methods     carbo's presets and their rivals, all with the same two methods, tell and ask
runs        runs of methods on problems, and the folder that records them
tables      tables, figures and docs/results.md, written from the records
measure     experiments on models and searches, and measurements of speed
cli         the commands
"""
