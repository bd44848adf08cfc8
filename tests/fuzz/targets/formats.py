"""YAML and JSON of whoever: values that JSON has, or one short line that says why not."""

import json
from typing import Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.formats.yaml_text import read_yaml

_MOST_SAID: Final = 500
_MOST_TEXT: Final = 16 << 20
"""Characters of what 16 KiB may become: 200,000 values, and a name is repeated as often as they are."""


def _repeated(form: str) -> bytes:
    """Six levels, each of which names the one before it 40 times."""
    lines = [f"a{level}: &a{level} {form % ', '.join([f'*a{level - 1}'] * 40)}" for level in range(1, 6)]
    return "\n".join(["a0: &a0 {k: 1, l: 2}", *lines]).encode()


SEEDS: Final = [
    _repeated("{<<: [%s]}"),
    _repeated("[%s]"),
    b"a: &a {b: *a}",
    b"? [1]\n: !!timestamp x",
    b"[0x10, 1e9, 09, .5, ~, y, !!int b, 0b1, -0o7, 1_0]",
    b'{"a": [1e999, NaN, "\\ud800", 123456789012345678901234567890]}',
]


def run(data: bytes) -> None:
    """Reads it as both."""
    try:
        for document in read_yaml(data):
            assert len(json.dumps(document, allow_nan=False)) < _MOST_TEXT
    except MalformedError as error:
        _check(error)
    try:
        json.dumps(parse_json(data), allow_nan=False)
    except MalformedError as error:
        _check(error)


def _check(error: MalformedError) -> None:
    said = str(error)
    assert said.isprintable()
    assert len(said) < _MOST_SAID
