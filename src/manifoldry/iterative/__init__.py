"""Estimators whose map minimises an objective step by step."""
