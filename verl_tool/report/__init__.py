"""The report of a run: one HTML file that needs nothing else, made from whatever its folder holds."""

from verl_tool.report.write import write_report

__all__ = ["write_report"]
