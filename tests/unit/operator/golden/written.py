"""What is rendered beside what is written in output/."""

import difflib
from pathlib import Path

import pytest

_AGAIN = """
After a change that is meant:  python -m pytest tests/unit/operator/golden --update-golden
"""


def check_written(rendered: str, expected: Path, *, update: bool) -> None:
    """Fail with the difference to a file's content, or write it anew."""
    if update:
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(rendered)
    written = expected.read_text() if expected.exists() else ""
    if rendered != written:
        diff = difflib.unified_diff(
            written.splitlines(), rendered.splitlines(), str(expected), "rendered now", lineterm=""
        )
        pytest.fail("\n".join([*diff, _AGAIN]), pytrace=False)
