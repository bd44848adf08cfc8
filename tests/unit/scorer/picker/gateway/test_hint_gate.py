"""What becomes of hints in headers and bodies, by the picker's configuration."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.config.contract import CLIENT, HintPolicy, ShareFrom
from kvtier_scorer.picker.gateway.bodies.fields import parse_body
from kvtier_scorer.picker.gateway.hint_gate import HintGate, Outcome, Translation
from kvtier_scorer.picker.gateway.protocol.events import RequestHead

PATH: Final = "/v1/completions"
ALL: Final = {
    "x-kvtier-retain": "300",
    "x-kvtier-priority": "high",
    "x-kvtier-share": "blue",
    "x-kvtier-nostore": "true",
    "x-kvtier-prefetch": "false",
}
GATES: Final = [HintGate(policy, share) for policy in HintPolicy for share in ShareFrom]


def translated(
    gate: HintGate, body: bytes, headers: Mapping[str, str] | None = None, path: str = PATH
) -> Translation:
    try:
        fields = parse_body(body)
    except Exception:  # noqa: BLE001 - such a body is not read
        fields = {}
    return gate.translate(RequestHead(path, headers or {}, None), body, fields)


def hints_at_the_engine(
    gate: HintGate, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> object:
    text = json.dumps(body).encode()
    after = translated(gate, text, headers).body
    read = json.loads(text if after is None else after)
    assert {**read, "kv_transfer_params": 0} == {**body, "kv_transfer_params": 0}
    return (read.get("kv_transfer_params") or {}).get("kvtier")


def asked(**hints: object) -> dict[str, Any]:
    return {"prompt": [1, 2], "kv_transfer_params": {"other": [1.5], "kvtier": hints}}


def outcomes(told: Translation) -> Counter[tuple[str, str]]:
    return Counter((hint, outcome.value) for hint, outcome in told.counts)


def test_headers_become_the_bodys_and_leave() -> None:
    told = translated(HintGate(), b'{"prompt": "x"}', ALL)
    assert told.body is not None
    assert json.loads(told.body) == {
        "prompt": "x",
        "kv_transfer_params": {
            "kvtier": {"retain": 300, "priority": "high", "share": "blue", "nostore": True}
        },
    }
    assert set(told.removed_headers) == set(ALL)
    assert told.retain_s == 300
    assert outcomes(told) == {(name.removeprefix("x-kvtier-"), "accepted"): 1 for name in ALL}


def test_a_header_wins_over_the_same_hint_of_the_body() -> None:
    body = asked(retain=5, priority="high", nostore=True)
    headers = {"x-kvtier-priority": "normal", "x-kvtier-retain": "60", "x-kvtier-nostore": "0"}
    assert hints_at_the_engine(HintGate(), body, headers) == {"retain": 60}
    assert hints_at_the_engine(HintGate(), body, {"x-kvtier-retain": "0"}) == {
        "priority": "high",
        "nostore": True,
    }


def test_without_hints_a_request_stays_as_it_was() -> None:
    for gate in GATES:
        for body in (b'{"prompt": "x"}', b"not JSON", b"", b'{"kv_transfer_params": {"kvtier": 7}}'):
            assert translated(gate, body).body is None
        assert gate.translate(RequestHead("/health", {}, None), None, {}) == Translation()


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_whose_hints_count(gate: HintGate) -> None:
    body, headers = asked(retain=5, share="red"), {"x-kvtier-nostore": "true", "x-kvtier-share": "green"}
    from_body = {"retain": 5, "share": "red"} if gate.policy is HintPolicy.ACCEPT else {}
    from_headers = {} if gate.policy is HintPolicy.REFUSE else {"nostore": True, "share": "green"}
    wanted = {**from_body, **from_headers}
    if gate.share_from is ShareFrom.CLIENT:
        wanted["share"] = "carol"
    assert hints_at_the_engine(gate, body, {**headers, CLIENT: "carol"}) == wanted


def test_nobodys_share_is_claimed_without_a_client() -> None:
    gate = HintGate(share_from=ShareFrom.CLIENT)
    body = asked(retain=5, share="red")
    assert hints_at_the_engine(gate, body, {"x-kvtier-share": "green"}) == {"retain": 5}
    told = translated(gate, json.dumps(body).encode(), {"x-kvtier-share": "green"})
    assert outcomes(told) == {("retain", "accepted"): 1, ("share", "not_allowed"): 2}


@pytest.mark.parametrize(
    "body",
    [
        '{"kv_transfer_params":{"kvtier":{"retain":9}},"kv_transfer_params":{"kvtier":{"retain":9}}}',
        '{"kv_transfer_params":{"kvtier":{"retain":9},"kvtier":{"retain":9}}}',
        '{"\\u006bv_transfer_params":{"\\u006B\\u0076tier":{"retain":9}}}',
        '{"sampling_params":{"extra_args":{"kv_transfer_params":{"kvtier":{"retain":9}}}}}',
        '[{"kv_transfer_params":{"kvtier":{"retain":9}}}]',
        '{"kv_transfer_params":{"kvtier":{"kv_transfer_params":{"kvtier":{"retain":9}},"retain":9}}}',
        '{"kv_transfer_params":{"kvtier":{"retain":9,"x":"' + "y" * 5000 + '"}}}',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_no_spelling_gets_past(body: str, encoding: str) -> None:
    for policy in (HintPolicy.HEADERS, HintPolicy.REFUSE):
        told = translated(HintGate(policy), body.encode(encoding), path="/inference/v1/generate")
        assert told.body is not None
        assert b"9" not in told.body
        json.loads(told.body)


@pytest.mark.parametrize(
    ("header", "value", "outcome"),
    [
        ("x-kvtier-retain", "soon", Outcome.BAD_VALUE),
        ("x-kvtier-retain", "nan", Outcome.BAD_VALUE),
        ("x-kvtier-retain", "1e9", Outcome.BAD_VALUE),
        ("x-kvtier-priority", "urgent", Outcome.BAD_VALUE),
        ("x-kvtier-share", "a,b", Outcome.SEVERAL_VALUES),
        ("x-kvtier-share", "", Outcome.BAD_VALUE),
    ],
)
def test_a_bad_header_is_dropped_and_told_of(header: str, value: str, outcome: Outcome) -> None:
    told = translated(HintGate(), b'{"prompt": "x"}', {header: value, "x-kvtier-nostore": "1"})
    assert told.body is not None
    assert json.loads(told.body)["kv_transfer_params"] == {"kvtier": {"nostore": True}}
    assert (header.removeprefix("x-kvtier-"), outcome) in told.counts
    [problem] = told.problems
    assert problem.startswith(header)
    assert not value or f" {value}" not in problem


def test_a_number_as_priority_is_about_shedding_and_no_hint() -> None:
    for number in ("-1", " 7 ", "+0"):
        assert translated(HintGate(), b"{}", {"x-kvtier-priority": number}) == Translation()


def test_only_bodies_that_take_hints_get_them() -> None:
    for path, body in (("/v1/embeddings", b"{}"), (PATH, b"[]"), (PATH, b'{"kv_transfer_params": 7}')):
        told = translated(HintGate(), body, {"x-kvtier-retain": "3"}, path)
        assert (told.body, told.retain_s) == (None, 0)
        assert told.counts == (("retain", Outcome.NO_PLACE),)
        assert told.removed_headers == ("x-kvtier-retain",)


_JSON: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_SAID: Final = st.dictionaries(
    st.sampled_from(("retain", "priority", "share", "nostore", "prefetch", "other")), _JSON, max_size=6
)


@given(
    st.sampled_from(GATES),
    st.one_of(_SAID, _JSON),
    st.dictionaries(st.sampled_from((*ALL, CLIENT)), st.text(max_size=70), max_size=5),
)
def test_any_hints_end_in_a_body_that_the_engine_reads(
    gate: HintGate, said: object, headers: Mapping[str, str]
) -> None:
    body = json.dumps({"prompt": "x", "kv_transfer_params": {"kvtier": said}}).encode()
    told = translated(gate, body, headers)
    after = json.loads(body if told.body is None else told.body)
    assert after["prompt"] == "x"
    assert len(told.counts) <= 16
    assert 0 <= told.retain_s <= 86400
