"""values.yaml: every value with its default, below what it is for."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import yaml
from pydantic import BaseModel

from kvtier_operator.generate.chart.values import SOURCE, Values
from kvtier_operator.generate.notice import notice

_WIDTH: Final = 110


def values_text() -> str:
    """The whole file."""
    return "\n".join([f"# {notice(SOURCE)}", *_lines(Values(), "")]) + "\n"


def _lines(model: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if not indent:
            yield ""
        yield from textwrap.wrap(
            field.description or "", _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
        )
        if isinstance(value, BaseModel):
            yield f"{indent}{field.alias}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield from _entry(str(field.alias), value, indent)


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401 - any value of YAML
    if not value or not isinstance(value, dict | list):
        yield f"{indent}{key}: {json.dumps(value)}"
        return
    yield f"{indent}{key}:"
    yield textwrap.indent(yaml.safe_dump(value, sort_keys=False).rstrip("\n"), f"{indent}  ")
