"""Neural architecture search: cells of 31 bits, the network they make, its training, and what was trained already."""
