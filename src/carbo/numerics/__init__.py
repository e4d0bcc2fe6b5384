"""Numerical tools that know no space and no model."""
