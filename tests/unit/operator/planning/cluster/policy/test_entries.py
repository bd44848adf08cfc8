"""Entries of an owner's lists, to the operator and to Helm alike."""

import json
import re

import pytest
from pydantic.alias_generators import to_camel
from tests.unit.operator.generate.test_chart import SCHEMA

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.base.owner_policy import ENTRIES, policy_of_text

DIGEST = "@sha256:" + "0" * 64
RIGHT = {
    "host_path": ["/", "/mnt", "/mnt/", "/mnt/nvme0/a.b", "/.kvtier", "/..data", "/.../x", "/mnt/a b"],
    "images": [
        *("vllm", "vllm:1.0", "vllm/", "vllm/vllm-openai", "my_team/x", "r.example/", "r.example/team/"),
        *("r.example:5000/team/x:1.0", f"r.example/x{DIGEST}", f"r.example/x:1{DIGEST}", "localhost/x"),
    ],
    "host_names": ["llm", "llm.example.com", "*.example.com", "a-b.example"],
    "foreign_gateways": ["edge", "edge/public", "edge-1/public.v2"],
}
WRONG = {
    "host_path": ["", "mnt", "relative/x", "//mnt", "/mnt//a", "/a/../b", "/a/.", "/..", "/mnt\n/../x"],
    "images": [
        *("", "*", "http://x/", "https://r.example/x", "r.example", "r.example:5000", "r.example/*", "a//b"),
        *("/a", "r.example/Team", "r.example/x@sha256:0", "a b", "r.example/team/:1", "x/\n"),
    ],
    "host_names": [
        "",
        "*",
        "a b",
        "llm.*.com",
        "LLM.example.com",
        "*.",
        "-a",
        "a..b",
        "https://a",
        "a:8",
        "a\n",
    ],
    "foreign_gateways": ["", "*", "a/b/c", "A_", "a/", "/b", "a/*", "a.b", "a\n"],
}


def _cases(entries: dict[str, list[str]]) -> list[tuple[str, str]]:
    assert entries.keys() == ENTRIES.keys()
    return [(limit, each) for limit in entries for each in entries[limit]]


def _fits_schema(limit: str, entry: str) -> bool:
    """As Helm reads a pattern: `$` is the end, not a line's."""
    items = SCHEMA["$defs"]["OwnerLimits"]["properties"][to_camel(limit)]["items"]
    return re.fullmatch(items["pattern"], entry) is not None


@pytest.mark.parametrize(("limit", "entry"), _cases(RIGHT))
def test_entries(limit: str, entry: str) -> None:
    assert _fits_schema(limit, entry)
    assert getattr(policy_of_text(json.dumps({to_camel(limit): [entry]}), "x"), limit) == (entry,)


@pytest.mark.parametrize(("limit", "entry"), _cases(WRONG))
def test_what_would_allow_nothing_is_refused(limit: str, entry: str) -> None:
    assert not _fits_schema(limit, entry)
    with pytest.raises(InvalidInputError, match=re.escape(f"x: {to_camel(limit)}[0]: write ")):
        policy_of_text(json.dumps({to_camel(limit): [entry]}), "x")
