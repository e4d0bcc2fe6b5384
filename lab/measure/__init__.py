"""Experiments on models and searches, and measurements of speed.

recorded_cases      recorded runs cut in two, on which the next three are tried
prediction          how well a model predicts the next evaluations (`python -m lab foresight`)
acquisition_search  how well a search maximises the acquisition (`ascent`)
final_choice        which point to take at the end of a noisy run (`choice`)
speed               the time of one suggestion (`speed`)
pace                the time of one suggestion, several methods side by side (`pace`)
growth, growth_figure       how the cost of a suggestion grows (`growth`)
optuna_overhead     the time that the Optuna sampler adds
"""
