"""Base classes of all estimators: input validation, fit, transform and inverse_transform."""
