"""Minimising objectives: filters of the gradient, search directions, line searches."""
