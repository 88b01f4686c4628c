"""Utilities for all packages: validation, arrays, threads, estimates, progress, warnings."""
