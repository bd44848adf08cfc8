from pathlib import Path

import pytest

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import json_file, parse_json, parse_json_object


def test_what_json_has() -> None:
    assert parse_json(b'{"a": [1, -2.5, true, null, "\xc3\xa4\\ud83d\\ude00"]}') == {
        "a": [1, -2.5, True, None, "ä😀"]
    }
    assert repr(parse_json(f"[{2**64 - 1}, {-(2**63)}, {2**70}]")) == (
        f"[{2**64 - 1}, {-(2**63)}, 1.1805916207174113e+21]"
    )
    assert parse_json("[Infinity, 1e999]", finite=False) == [float("inf")] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        (b'"\xff"', "not UTF-8: invalid start byte at byte 1"),
        ("[" * 65 + "]" * 65, "more than 64 objects and lists within one another"),
        ('{"a":' * 65 + "1" + "}" * 65, "more than 64 objects and lists within one another"),
        ("[" * 1_000_000, "more than 64 objects and lists within one another"),
        ("9" * 5000, "99999"),
        (f"{'9' * 1_000_000}.5", "99999"),
        ("[NaN]", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e999", "1e999 is no number"),
        ('["\\ud800"]', "text with half a character"),
        ('{"\\udfff": 1}', "text with half a character"),
        (f'"{"x" * (4 << 20)}"', "more than 4,194,304 bytes"),
        (f'{{"{"x" * 9999}": 1, "{"x" * 9999}": 2}}', "the key 'xxx"),
    ],
    ids=range(14),
)
def test_what_it_has_not_is_one_short_line(text: str | bytes, message: str) -> None:
    with pytest.raises(MalformedError) as refused:
        parse_json(text, unique_keys=True)
    said = str(refused.value)
    assert said.startswith(message)
    assert len(said) < 200
    assert said.isprintable()


def test_what_has_to_be_an_object(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"a": 1, "a": 2}')
    assert parse_json_object(file.read_bytes()) == json_file(file) == {"a": 2}
    file.write_text("[]")
    with pytest.raises(MalformedError, match=f"^{file}: not JSON: no JSON object$"):
        json_file(file)
