"""Runs, states and claims as revision 41dd473 made them, but for what later commits changed on purpose.

`python -m tests.frozen FILE` records them anew.
"""
