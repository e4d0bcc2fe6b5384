"""Kernels over the product of the variables' graphs."""
