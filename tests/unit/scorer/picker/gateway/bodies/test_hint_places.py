"""Bodies with hints anywhere, however they are spelled, against Python's own reader, which engines use."""

import json
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.picker.gateway.bodies.hint_places import (
    as_utf8,
    blank,
    find_hints,
    with_hints,
    with_last,
)

_NAMES: Final = ("kv_transfer_params", "kvtier", "prompt", "a", "kv_transfer_param", "kvtierx", '"', "\\")
_SCALARS: Final = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(('{"kvtier":{', '\\"', "kvtier", "é", ""))
)


class Members(list[tuple[str, Any]]):
    """An object with its members as they are written, of which several may have one name."""


_VALUES: Final = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(st.tuples(st.sampled_from(_NAMES), inner), max_size=4).map(Members),
    ),
    max_leaves=25,
)
_ENCODINGS: Final = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig")
_OBJECTS: Final = st.lists(st.tuples(st.sampled_from(_NAMES), _VALUES), max_size=4).map(Members)
_PARAMS: Final = st.lists(st.tuples(st.sampled_from(("kvtier", "kvtier", "b")), _OBJECTS), max_size=3).map(
    Members
)
_BODIES: Final = st.builds(
    lambda before, params, after: Members(
        [*before, *[("kv_transfer_params", one) for one in params], *after]
    ),
    _OBJECTS,
    st.lists(_PARAMS, max_size=2),
    _OBJECTS,
)


def spelled(value: object, draw: st.DataObject) -> str:
    """A JSON text of the value, with spaces and escapes wherever JSON allows them."""
    space = draw.draw(st.sampled_from(("", "", " ", "\n\t")))
    if isinstance(value, Members):
        inner = ",".join(f"{_name(name, draw)}{space}:{space}{spelled(one, draw)}" for name, one in value)
        return f"{space}{{{space}{inner}{space}}}{space}"
    if isinstance(value, list):
        return f"[{space}{','.join(spelled(one, draw) for one in value)}{space}]"
    return json.dumps(value, ensure_ascii=draw.draw(st.booleans()))


def _name(name: str, draw: st.DataObject) -> str:
    if draw.draw(st.booleans()):
        return json.dumps(name)
    form = draw.draw(st.sampled_from(("\\u{:04x}", "\\u{:04X}")))
    return '"' + "".join(form.format(ord(letter)) for letter in name) + '"'


def hint_objects(body: bytes) -> list[Members]:
    """What objects stand as `kvtier` in an object that stands as `kv_transfer_params`, at any depth."""
    return list(_hint_objects(json.loads(body, object_pairs_hook=Members)))


def _hint_objects(value: object) -> Any:  # noqa: ANN401 - an iterator
    for name, one in value if isinstance(value, Members) else ():
        if name == "kv_transfer_params" and isinstance(one, Members):
            yield from (hints for key, hints in one if key == "kvtier" and isinstance(hints, Members))
        yield from _hint_objects(one)
    if isinstance(value, list) and not isinstance(value, Members):
        for one in value:
            yield from _hint_objects(one)


@given(_BODIES, st.data())
def test_no_hint_is_left_and_nothing_else_is_touched(value: Members, draw: st.DataObject) -> None:
    body = spelled(value, draw).encode()
    blanked = blank(body, find_hints(body).objects)
    assert not any(hint_objects(blanked))
    assert len(blanked) == len(body)
    assert _without_hints(json.loads(blanked, object_pairs_hook=Members)) == _without_hints(
        json.loads(body, object_pairs_hook=Members)
    )


@given(_BODIES, st.data())
def test_hints_come_where_the_engine_reads_them(value: Members, draw: st.DataObject) -> None:
    body = spelled(value, draw).encode()
    before = json.loads(body)
    after = with_hints(body, find_hints(body), b'{"retain":7}', may_add=True)
    params = before.get("kv_transfer_params", {})
    if params is None:
        params = {}
    if not isinstance(params, dict):
        assert after is None
        return
    assert after is not None
    assert json.loads(after) == {**before, "kv_transfer_params": {**params, "kvtier": {"retain": 7}}}


@given(_OBJECTS, st.data())
def test_a_body_that_may_get_no_field_gets_none(value: Members, draw: st.DataObject) -> None:
    body = spelled(value, draw).encode()
    after = with_hints(body, find_hints(body), b"{}", may_add=False)
    assert after is None or "kv_transfer_params" in json.loads(body)


@given(st.binary(max_size=80))
def test_what_is_no_json_is_survived(body: bytes) -> None:
    text = b'{"kv_transfer_params":{"kvtier":' + body
    places = find_hints(text)
    blank(text, places.objects)
    with_hints(text, places, b"{}", may_add=True)
    with_last(text, (len(text) - len(body), len(text)), b'"a":1')
    as_utf8(body)


def test_many_hints_of_one_name_are_all_found() -> None:
    body = b'{"kv_transfer_params":{' + b",".join([b'"kvtier":{"a":1}'] * 5000) + b"}}"
    assert not any(hint_objects(blank(body, find_hints(body).objects)))


def test_a_text_in_another_encoding_is_read_as_engines_do() -> None:
    text = '{"kv_transfer_params": {"kvtier": {}}}'
    for encoding in ("utf-16", "utf-16-le", "utf-32-be", "utf-8-sig", "utf-8"):
        assert as_utf8(text.encode(encoding)) == text.encode()
    for none in (b"\x00\x01no text at all\xd8", text.encode("utf-16")[:-1], "7".encode("utf-16")):
        assert as_utf8(none) is None


@given(st.text(st.characters(), max_size=8), st.sampled_from(_ENCODINGS))
def test_halves_of_surrogates_are_read_as_engines_do(said: str, encoding: str) -> None:
    body = json.dumps({"a": said}, ensure_ascii=False).encode(encoding, "surrogatepass")
    text = as_utf8(body)
    assert text is not None
    assert json.loads(text.decode()) == json.loads(json.dumps(json.loads(body)))


@given(_OBJECTS, st.data())
def test_members_behind_all_others_count(value: Members, draw: st.DataObject) -> None:
    inner = spelled(value, draw).strip()
    body = f'{{"kv_transfer_params":{{"kvtier":{inner}}}}}'.encode()
    place = find_hints(body).hints
    assert place is not None
    after = with_last(body, place, b'"a":7')
    if not value:
        assert after is None
        return
    assert after is not None
    assert json.loads(after)["kv_transfer_params"]["kvtier"] == {**json.loads(inner), "a": 7}


def _without_hints(value: object) -> object:
    if isinstance(value, Members):
        return [
            (name, _without_params(one) if name == "kv_transfer_params" else _without_hints(one))
            for name, one in value
        ]
    return [_without_hints(one) for one in value] if isinstance(value, list) else value


def _without_params(value: object) -> object:
    if not isinstance(value, Members):
        return _without_hints(value)
    return [
        (
            name,
            None if name == "kvtier" and isinstance(one, Members) else _without_hints(Members([(name, one)])),
        )
        for name, one in value
    ]
