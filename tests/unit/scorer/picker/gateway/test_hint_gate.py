"""What becomes of hints in headers and bodies, by the picker's configuration."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_common.hints import Hints, parse_hints
from kvtier_scorer.config.contract import CLIENT, HintPolicy, ShareFrom
from kvtier_scorer.errors import BadRequestError
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
        bodies = [b"not JSON", b"", b"[]"]
        if gate.share_from is ShareFrom.HEADER:
            bodies += (b'{"prompt": "x"}', b'{"kv_transfer_params": {"kvtier": 7}}')
        for body in bodies:
            assert translated(gate, body).body is None
        assert gate.translate(RequestHead("/health", {}, None), None, {}) == Translation()


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_whose_hints_count(gate: HintGate) -> None:
    body, headers = asked(retain=5, share="red"), {"x-kvtier-prefetch": "true", "x-kvtier-share": "green"}
    from_body = {"retain": 5, "share": "red"} if gate.policy is HintPolicy.ACCEPT else {}
    from_headers = {} if gate.policy is HintPolicy.REFUSE else {"prefetch": True, "share": "green"}
    wanted = {**from_body, **from_headers}
    if gate.share_from is ShareFrom.CLIENT:
        wanted["share"] = "carol"
    assert hints_at_the_engine(gate, body, {**headers, CLIENT: "carol"}) == wanted


def test_nobodys_share_is_claimed_without_a_client() -> None:
    gate = HintGate(share_from=ShareFrom.CLIENT)
    body = asked(retain=5, share="red")
    assert hints_at_the_engine(gate, body, {"x-kvtier-share": "green"}) == {"retain": 5, "share": "-"}
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


SALTED: Final = b'{"prompt": "x", "cache_salt": "victim:1"}'


@pytest.mark.parametrize("policy", HintPolicy)
@pytest.mark.parametrize(
    ("client", "share"),
    [(None, "-"), ("", "-"), ("carol", "carol"), ("c" * 63, "c" * 63), ("c" * 64, "-"), ("carol,bob", "-")],
)
def test_of_a_client_the_salt_never_says_the_share(
    policy: HintPolicy, client: str | None, share: str
) -> None:
    headers = {} if client is None else {CLIENT: client}
    told = translated(HintGate(policy, ShareFrom.CLIENT), SALTED, headers)
    assert told.body is not None
    assert json.loads(told.body)["kv_transfer_params"] == {"kvtier": {"share": share}}
    said = Outcome.SEVERAL_VALUES if "," in (client or "") else Outcome.BAD_VALUE
    assert ((("share", said) in told.counts) == (share == "-")) or client is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/chat/completions/batch?a=/b",
        "/inference/v1/generate",
        "/v1/messages/",
        "/v1/chat/completion%73",
        "/v1/c%6fmpletions%2F",
        "/prefix/v1%2Fresponses",
    ],
)
def test_a_share_comes_to_every_path_that_has_a_place_for_it(path: str) -> None:
    told = translated(HintGate(share_from=ShareFrom.CLIENT), SALTED, {CLIENT: "carol"}, path)
    assert told.body is not None
    assert json.loads(told.body)["kv_transfer_params"] == {"kvtier": {"share": "carol"}}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig"])
@pytest.mark.parametrize("gate", [gate for gate in GATES if gate != HintGate()], ids=str)
def test_half_a_surrogate_hides_no_hint(gate: HintGate, encoding: str) -> None:
    asks = {**asked(share="victim", retain=9), "user": "\ud800"}
    body = json.dumps(asks, ensure_ascii=False).encode(encoding, "surrogatepass")
    told = translated(gate, body, {CLIENT: "carol"}, "/v1/messages")
    assert told.body is not None
    read = json.loads(told.body)
    assert read["user"] == "\ud800"
    assert read["kv_transfer_params"]["kvtier"].get("share") in {None, "carol"}
    assert Outcome.NOT_ALLOWED in {count.outcome for count in told.counts}


def test_what_engines_cannot_read_is_refused_where_hints_would_go() -> None:
    broken = json.dumps(asked(retain=9)).encode("utf-16")[:-1]
    for gate in GATES:
        with pytest.raises(BadRequestError, match=r"^the body is not JSON in UTF-8, UTF-16 or UTF-32$"):
            gate.translate(RequestHead(PATH, {"x-kvtier-retain": "5"}, None), broken, {})
        sound = gate.translate(RequestHead("/v1/sound", {"x-kvtier-retain": "5"}, None), broken, {})
        assert sound.body is None


_LONG: Final = "y" * 5000


@pytest.mark.parametrize("gate", GATES, ids=str)
@pytest.mark.parametrize(
    "rest",
    [
        ",".join(f'"future{number}":1' for number in range(40)),
        '"note":NaN',
        '"note":"\\ud800"',
        f'"note":{"9" * 400}',
        f'"note":"{_LONG}"',
        f'"note":{"[" * 500}{"]" * 500}',
    ],
    ids=["names", "nan", "surrogate", "number", "long", "deep"],
)
def test_what_must_not_be_stored_is_not_whoever_asks(gate: HintGate, rest: str) -> None:
    for says in ('"nostore":true,' + rest, rest + ' , "nostore" : true '):
        for headers in ({}, {"x-kvtier-retain": "60"}, {CLIENT: "carol"}, {"x-kvtier-share": "green"}):
            body = '{"prompt":"x","kv_transfer_params":{"kvtier":{%s}}}' % says  # noqa: UP031 - braces
            after = translated(gate, body.encode(), headers).body
            hints = json.loads(after or body)["kv_transfer_params"]["kvtier"]
            assert hints["nostore"] is True
            if gate.policy is not HintPolicy.REFUSE and "x-kvtier-retain" in headers:
                assert hints["retain"] == 60


def test_an_unread_hint_of_the_body_does_not_win_over_a_header() -> None:
    body = asked(retain=5, priority="high", share="red", note=_LONG)
    headers = {"x-kvtier-retain": "0", "x-kvtier-priority": "normal", CLIENT: "carol"}
    hints = hints_at_the_engine(HintGate(share_from=ShareFrom.CLIENT), body, headers)
    assert parse_hints(hints)[0] == Hints(tenant="carol")


def test_not_to_store_takes_nothing_from_anybody_and_is_never_refused() -> None:
    told = translated(HintGate(HintPolicy.REFUSE), b"{}", {"x-kvtier-nostore": "yes", "x-kvtier-retain": "9"})
    assert told.body == b'{"kv_transfer_params":{"kvtier":{"nostore":true}}}'
    nested = b'{"sampling_params":{"extra_args":{"kv_transfer_params":{"kvtier":{"nostore":true}}}}}'
    told = translated(HintGate(HintPolicy.REFUSE), nested, path="/inference/v1/generate")
    assert told.body is not None
    assert json.loads(told.body)["kv_transfer_params"] == {"kvtier": {"nostore": True}}


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
