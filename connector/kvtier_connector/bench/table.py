"""The table of what was measured, beside what it is compared with and what it should reach."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from kvtier_connector.bench.parts import Part


def table(report: Mapping[str, Any], parts: Mapping[str, Part]) -> Table:
    """Return the table of a report.

    Args:
        report: Figures by the part's name.
        parts: Those parts, and maybe others.
    """
    made = Table("what", "measured", "beside", "limit", title="kvtier connector")
    for name, figures in report.items():
        for row in parts[name].rows(figures):
            made.add_row(*row)
    return made
