"""To be written."""
edge_sums = pair_sums = position_sums = None
