"""To be written."""
distances = nearest = sort_rows = None
