"""The workloads, one theme per module; each module lists its own in ``WORKLOADS``."""
