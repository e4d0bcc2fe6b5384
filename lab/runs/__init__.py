"""Runs of methods on problems, and the folder that records them."""
