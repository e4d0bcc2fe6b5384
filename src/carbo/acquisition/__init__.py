"""The acquisition: which row to evaluate next."""
