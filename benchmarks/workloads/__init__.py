"""The workloads, one topic per module; each module has a list ``WORKLOADS``."""
