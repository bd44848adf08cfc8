"""The chart's README: its introduction, and a table of all values."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from kvtier_operator.generate.chart.values import SOURCE, Values
from kvtier_operator.generate.notice import notice

_INTRODUCTION: Final = Path(__file__).with_name("introduction.md")


def readme() -> str:
    """The whole page."""
    rows = "".join(
        f"| `{key}` | `{json.dumps(value, separators=(', ', ': '))}` | {about} |\n"
        for key, value, about in _rows(Values(), "")
    )
    table = f"## Values\n\n| Value | Default | Description |\n|---|---|---|\n{rows}"
    return f"<!-- {notice(SOURCE)} -->\n{_INTRODUCTION.read_text(encoding='utf-8')}\n{table}"


def _rows(model: BaseModel, prefix: str) -> Iterator[tuple[str, object, str]]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _rows(value, f"{prefix}{field.alias}.")
        else:
            yield f"{prefix}{field.alias}", value, (field.description or "").replace("|", "\\|")
