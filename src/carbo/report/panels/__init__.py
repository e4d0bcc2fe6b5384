"""The panels of a page."""
