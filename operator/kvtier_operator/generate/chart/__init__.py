"""The generated part of charts/tiered-prefix-cache: path from the repository's root, and text."""

from pathlib import Path
from typing import Final

from kvtier_operator.generate.chart.about import CHART_NAME, chart_text
from kvtier_operator.generate.chart.readme import readme
from kvtier_operator.generate.chart.schema import schema_text
from kvtier_operator.generate.chart.templates import templates
from kvtier_operator.generate.chart.values_text import values_text

_CHART: Final = f"charts/{CHART_NAME}"


def chart_files() -> dict[str, str]:
    """Every generated file of the chart."""
    files = {
        "Chart.yaml": chart_text(),
        "values.yaml": values_text(),
        "values.schema.json": schema_text(),
        "README.md": readme(),
        **{str(Path("templates") / name): text for name, text in templates().items()},
    }
    return {f"{_CHART}/{name}": text for name, text in files.items()}
