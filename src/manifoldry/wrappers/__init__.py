"""Estimators around other estimators."""
