"""Measurements of speed, prediction and search."""
