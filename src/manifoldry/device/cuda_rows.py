"""To be written."""
log_precisions = product = None
