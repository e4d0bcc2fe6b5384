"""Doors to other packages."""
