"""Comparison with other packages: ``make bench``, ``make bench-quick``, ``make bench-check``.

A :class:`~benchmarks.workload.Workload` defines what is measured; `measure` runs every contestant
in its own process, in the environment created by `peers`; `ratios` compares them at equal
quality; `report` writes JSON, tables and plots. See docs/benchmarks.md.
"""
