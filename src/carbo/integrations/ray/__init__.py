"""carbo as a Ray Tune searcher."""
