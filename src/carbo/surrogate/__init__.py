"""The surrogate: Gaussian processes conditioned on the data, and what is asked of them."""
