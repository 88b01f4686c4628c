"""Semidefinite methods: coordinates through a positive semidefinite matrix of inner products."""
