"""Equal prompts are equal bytes, and different prompts never are."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_scorer.picker.gateway.bodies import read_prompt

# few texts, so that parts are easily taken for one another: JSON, roles and digests as text among them
TEXT = st.sampled_from(["", "a", "b", "ab", "user", "tools", '{"name":"a"}', '[{"a":1}]', "ÿþý"])
ROLE = st.sampled_from(["user", "system", "tools", "a", '{"name":"a"}'])
PART = st.one_of(
    TEXT.map(lambda text: {"type": "text", "text": text}),
    TEXT.map(lambda url: {"type": "image_url", "image_url": {"url": url}}),
)
MESSAGE = st.fixed_dictionaries(
    {"role": ROLE, "content": st.one_of(TEXT, st.lists(PART, min_size=1, max_size=3))},
    optional={"name": TEXT},
)
CHAT = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=3)},
    optional={"tools": st.lists(st.fixed_dictionaries({"a": st.integers(0, 1)}), max_size=2)},
)


def text(body: dict[str, Any]) -> bytes:
    return read_prompt("/v1/chat/completions", json.dumps({"model": "m", **body}).encode()).text


def meaning(body: dict[str, Any]) -> object:
    """What the engine sees: a single part of text is the text, in whatever order an object's fields come."""
    messages = []
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        messages.append((message["role"], parts, message.get("name")))
    return messages, body.get("tools")


def shuffled(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The same value with every object's fields in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


def test_prompts_are_equal_bytes_if_and_only_if_they_are_equal() -> None:
    """Every conversation of up to two of these messages, beside every other."""
    texts = ["", "a", "user", '{"name":"a"}', "ab", "b", "d91fdb32d27cb9a7dd1dee55a4c2a2c5"]
    parts = [{"type": "text", "text": text} for text in texts] + [{"type": "image_url", "url": "a"}]
    contents = [*texts, *([one] for one in parts), *([one, two] for one in parts[1:] for two in parts[1:])]
    roles = ("user", '{"name":"a"}')
    messages = [{"role": role, "content": each} for role in roles for each in contents]
    messages += [{"role": role, "content": text, "name": "a"} for role in roles for text in texts]
    meanings: dict[bytes, Any] = {}
    forms: dict[str, bytes] = {}
    for asked in [*([one] for one in messages), *([one, two] for one in messages for two in messages)]:
        body = {"messages": asked}
        told, meant = text(body), json.dumps(meaning(body))
        assert meanings.setdefault(told, meant) == meant
        assert forms.setdefault(meant, told) == told
    assert len(meanings) == len(forms) > 9000


@settings(max_examples=60)
@given(CHAT)
def test_what_a_client_library_writes_otherwise_is_the_same(body: dict[str, Any]) -> None:
    other = shuffled(body) | {"stream": True, "temperature": 0.5, "documents": None}
    for message in other["messages"]:
        message["tool_calls"] = None
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    assert text(other) == text(body)


@settings(max_examples=60)
@given(CHAT, MESSAGE)
def test_a_conversation_that_goes_on_begins_as_before(body: dict[str, Any], message: dict[str, Any]) -> None:
    longer = body | {"messages": [*body["messages"], message]}
    assert text(longer).startswith(text(body))


@given(st.text(max_size=40), st.text(max_size=40))
def test_completions_are_equal_if_their_texts_are(one: str, two: str) -> None:
    def prompt(value: str) -> bytes:
        return read_prompt("/v1/completions", json.dumps({"model": "m", "prompt": value}).encode()).text

    assert (prompt(one) == prompt(two)) == (one == two)
