"""The file of all of the picker's figures, to which each measurement adds its own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


def merge(out: Path, figures: Mapping[str, Any]) -> None:
    """Put the figures beside what other measurements wrote to the file.

    Raises:
        click.ClickException: The file holds something else than measurements.
    """
    known: Any = {}
    if out.exists():
        try:
            known = json.loads(out.read_text(encoding="utf-8"))
        except ValueError as error:
            raise click.ClickException(f"{out}: is not JSON: {error}; move it away") from None
        if not isinstance(known, dict):
            raise click.ClickException(f"{out}: must hold a JSON object; move it away")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**known, **figures}, indent=2) + "\n", encoding="utf-8")
