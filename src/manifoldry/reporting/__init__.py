"""A report on data and their maps: one HTML file."""

from manifoldry.reporting.build import Report, report
from manifoldry.reporting.source import read_data

__all__ = ["Report", "read_data", "report"]
