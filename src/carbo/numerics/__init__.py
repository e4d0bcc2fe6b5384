"""Numerical tools: linear algebra, samplers, threads. They know no space and no model."""
