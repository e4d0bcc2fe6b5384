"""Search spaces: variables, their graphs, rows of integers, constraints and neighbours."""
