"""Meta-estimators: estimators that wrap another estimator."""
