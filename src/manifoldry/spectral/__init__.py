"""Spectral estimators: coordinates are eigenvectors."""
