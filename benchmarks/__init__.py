"""Side by side with peers, as ratios: ``make bench``, ``make bench-quick``, ``make bench-check``.

A :class:`~benchmarks.workload.Workload` says what is measured; `measure` runs every contestant in
a process of its own, in the environment that `peers` made for it; `ratios` compares them at equal
quality; `report` writes JSON, tables and plots. See docs/benchmarks.md.
"""
