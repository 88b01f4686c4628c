"""Estimators whose map minimizes an objective step by step."""
