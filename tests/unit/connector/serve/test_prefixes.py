"""Files of prefixes: what is understood, and the line for what is not."""

import json
from pathlib import Path

import pytest

from kvtier_common.errors import MalformedError
from kvtier_common.hints import FIELD, Priority, parse_hints
from kvtier_connector.serve.prefixes import read_prefix, read_prefixes

CHAT = [{"role": "system", "content": "Be brief."}]


@pytest.mark.parametrize(
    ("fields", "path", "content"),
    [
        ({"text": "Be brief."}, "/v1/completions", ("prompt", "Be brief.")),
        ({"tokens": [1, 2, 3]}, "/v1/completions", ("prompt", [1, 2, 3])),
        ({"messages": CHAT, "tools": [{}]}, "/v1/chat/completions", ("messages", CHAT)),
    ],
)
def test_a_prefix_is_asked_for_with_as_little_output_as_there_is_and_kept(
    fields: dict[str, object], path: str, content: tuple[str, object]
) -> None:
    prefix = read_prefix({**fields, "retain_s": 90, "model": "m"}, "system")
    request = prefix.request()
    assert (prefix.name, prefix.path, prefix.retain_s) == ("system", path, 90)
    assert request[content[0]] == content[1]
    assert (request["max_tokens"], request["model"]) == (1, "m")
    hints, problems = parse_hints(request["kv_transfer_params"][FIELD])
    assert (hints.retain_s, hints.priority, problems) == (90, Priority.HIGH, [])


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "exactly one of text, messages, tokens"),
        ({"text": "a", "tokens": [1]}, "exactly one of text, messages, tokens"),
        ({"text": ""}, "text: must be text, not empty"),
        ({"tokens": [1, True]}, "tokens: must be a list of token ids"),
        ({"messages": ["hello"]}, "messages: must be a list of a chat's messages"),
        ({"text": "a", "tools": [{}]}, "tools: only with messages"),
        ({"text": "a", "retain_s": 1}, "retain_s: must be 10 to 86400 seconds"),
        ({"text": "a", "retain_s": float("nan")}, "retain_s: must be 10 to 86400 seconds"),
        ({"text": "a", "name": ""}, "name: must be text of 1 to 63 characters"),
        ({"text": "a", "retain": 9}, "retain: must be text from 10s to 24h"),
        ({"text": "a", "retain": "25h"}, "retain: must be text from 10s to 24h"),
        ({"text": "a", "retain": "5s"}, "retain: must be text from 10s to 24h"),
        ({"text": "a", "retain": "1h", "retain_s": 60}, "only one of retain and retain_s"),
        ({"text": "a", "ratain": "1h"}, "ratain: unknown; known are "),
        ({"text": "a", "model": 5}, "model: must be text"),
    ],
)
def test_what_is_wrong_with_a_prefix_is_one_line(fields: dict[str, object], line: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read_prefix(fields, "system")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("duration", "seconds"), [("10s", 10), ("30m", 1800), ("24h", 86400)])
def test_a_time_is_written_as_in_the_resource(duration: str, seconds: int) -> None:
    assert read_prefix({"text": "a", "retain": duration}, "system").retain_s == seconds


@pytest.mark.parametrize("text", ["You book flights.\n", "[INST] Be brief.", "Say {x}.", "1. Be brief."])
def test_a_file_that_is_not_json_is_the_text_itself(tmp_path: Path, text: str) -> None:
    (tmp_path / "system.json").write_text(text)
    [prefix], problems = read_prefixes(tmp_path)
    assert (prefix.name, prefix.body, problems) == ("system", {"prompt": text}, [])


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b'{"text": "a",}', b"\n {", b"[1, 2]", b'"a"'])
def test_json_with_a_mistake_is_not_taken_for_a_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "system.json").write_bytes(content)
    prefixes, [problem] = read_prefixes(tmp_path)
    assert (prefixes, "system.json: " in problem, "\n" in problem) == ([], True, False)


def test_a_bad_file_costs_itself_alone(tmp_path: Path) -> None:
    files = {
        "a": '{"text": "one"}',
        "b": "{",
        "c": '{"name": "a", "text": "two"}',
        "d": '{"tokens": [7]}',
        "e": "[]",
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(content)
    (tmp_path / "f.json").mkdir()
    (tmp_path / "notes.txt").write_text("no prefix")
    prefixes, problems = read_prefixes(tmp_path)
    assert [prefix.name for prefix in prefixes] == ["a", "d"]
    assert [Path(problem.partition(":")[0]).stem for problem in problems] == ["b", "c", "e", "f"]
    assert read_prefixes(tmp_path / "absent") == ([], [])
    assert json.dumps([prefix.request() for prefix in prefixes])
