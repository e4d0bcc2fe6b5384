"""Runs, states and claims as revision 41dd473 made them. `python -m tests.frozen FILE` records them anew."""
