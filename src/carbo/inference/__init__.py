"""The posterior of a kernel's parameters given the data."""
