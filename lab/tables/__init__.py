"""Tables, figures and docs/results.md, written from the recorded runs.

results         the records of a folder, sorted for comparison
paper           the paper's printed numbers
statistics      means, errors, ranks, paired differences
tables, anytime, cost_tables, rankings      the tables
losses          the comparisons that our presets lose
formats, number_cells       how tables are written
plots, page     the figures, and the page with all of it
"""
