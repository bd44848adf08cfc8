"""What each API's body is as a prompt, and what a client is told about a body that is none."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kvtier_scorer.errors import BadFieldError, BadRequestError
from kvtier_scorer.picker.gateway.bodies import UNKNOWN_PROMPT, read_prompt
from kvtier_scorer.picker.gateway.bodies.json_size import MOST_CONTAINERS
from kvtier_scorer.picker.gateway.protocol.messages import error_body
from kvtier_scorer.scheduling.model import Prompt, prompt_tokens

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
USER = {"role": "user", "content": "hello"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def read(path: str, **body: object) -> Prompt:
    return read_prompt(path, json.dumps({"model": "m", **body}).encode())


def user(content: object, **more: object) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": content, **more}]}


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (CHAT, {"messages": [USER]}, b"\xffuser\xfehello"),
        (CHAT, user([{"type": "text", "text": "hello"}]), b"\xffuser\xfehello"),
        (CHAT, user(["hello"]), b"\xffuser\xfehello"),
        (CHAT, user(None), b"\xffuser\xfe"),
        (CHAT, user([]), b"\xffuser\xfe"),
        (CHAT, user("é"), "\xff".encode("latin-1") + b"user\xfe" + "é".encode()),
        (
            CHAT,
            user([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]),
            b"\xffuser\xfea\xfdb",
        ),
        (CHAT, user("x", name="bob"), b'\xffuser\xfex\xfc{"name":"bob"}'),
        (CHAT, user("x", name=None, id="i", status="s"), b"\xffuser\xfex"),
        (
            CHAT,
            {"messages": [{"role": "system", "content": "s"}, USER], "tools": [{"b": 1, "a": 2}]},
            b'\xfbtools[{"a":2,"b":1}]\xffsystem\xfes\xffuser\xfehello',
        ),
        (COMPLETIONS, {"prompt": "hello"}, b"hello"),
        (COMPLETIONS, {"prompt": ""}, b""),
        (COMPLETIONS, {"prompt": ["hello", "other"]}, b"hello"),
        (RESPONSES, {"input": "hello"}, b"\xffuser\xfehello"),
        (RESPONSES, {"input": [USER]}, b"\xffuser\xfehello"),
        (RESPONSES, {"input": [{**USER, "type": "message", "id": "msg_1"}]}, b"\xffuser\xfehello"),
        (RESPONSES, {"input": "hello", "instructions": "s"}, b"\xffsystem\xfes\xffuser\xfehello"),
        (
            RESPONSES,
            {"input": [{"type": "function_call_output", "output": "42"}]},
            b'\xfffunction_call_output\xfe\xfc{"output":"42"}',
        ),
        (
            RESPONSES,
            {"input": [{"type": "item_reference", "id": "msg_1"}]},
            b'\xffitem_reference\xfe\xfc{"id":"msg_1"}',
        ),
        (EMBEDDINGS, {"input": "hello"}, b"hello"),
        (EMBEDDINGS, {"input": ["hello", "other"]}, b"hello"),
        (EMBEDDINGS, {"messages": [USER]}, b"\xffuser\xfehello"),
    ],
)
def test_the_prompt_is_its_text_in_the_order_of_the_engine(
    path: str, body: Mapping[str, Any], text: bytes
) -> None:
    prompt = read(path, **body)
    assert (prompt.model, prompt.salt, prompt.token_ids) == ("m", "", None)
    assert prompt.text == text


@pytest.mark.parametrize(("path", "field"), [(COMPLETIONS, "prompt"), (EMBEDDINGS, "input")])
@pytest.mark.parametrize(
    ("value", "tokens"), [([1, 2, 4_294_967_295], [1, 2, 4_294_967_295]), ([[7, 8], [9]], [7, 8]), ([[]], [])]
)
def test_tokens_are_taken_as_they_are(path: str, field: str, value: object, tokens: list[int]) -> None:
    prompt = read(path, **{field: value})
    assert prompt.token_ids is not None
    assert (prompt.text, prompt.token_ids.tolist()) == (b"", tokens)


def test_what_is_not_text_is_a_digest_of_all_of_it() -> None:
    first = read(CHAT, **user([IMAGE])).text
    assert first == read(CHAT, **user([dict(reversed(IMAGE.items()))])).text
    other = {**IMAGE, "image_url": {"url": "data:image/png;base64,AAAB"}}
    assert first != read(CHAT, **user([other])).text
    assert len(first) == len(b"\xffuser\xfe\xfa") + 32
    embeds = read(COMPLETIONS, prompt_embeds="AAAA").text
    assert embeds != read(COMPLETIONS, prompt=embeds[1:].decode()).text


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        (CHAT, {"messages": [USER, 1]}, {"messages": [USER, 2]}),
        (CHAT, {"messages": [{}]}, {"messages": [{"a": 1}]}),
        (CHAT, {"messages": [{"role": 1}]}, {"messages": [{"role": []}]}),
        # openai-harmony's form, which vLLM takes
        (CHAT, {"messages": [{"author": {"role": "user"}}]}, {"messages": [{"author": {"role": "tool"}}]}),
        (CHAT, {"messages": [[USER]]}, {"messages": [[USER, USER]]}),
        (CHAT, user(1), user({})),
        (CHAT, user({"a": 1}), user([{"a": 1}])),
        (CHAT, user(["a", True]), user(["a", None])),
        (CHAT, user([{"type": [], "text": "x"}]), user([{"type": {}, "text": "x"}])),
        (CHAT, user([{"type": "text"}]), user([{"type": "text", "text": 1}])),
        (RESPONSES, {"input": [{"content": "x"}]}, {"input": [{"content": "y"}]}),
        (RESPONSES, {"input": "x", "instructions": 1}, {"input": "x", "instructions": ["y"]}),
    ],
    ids=str,
)
def test_forms_that_are_not_known_are_taken_as_a_whole(
    path: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    assert read(path, **one).text == read(path, **one).text != read(path, **other).text


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (CHAT, "messages"),
        (COMPLETIONS, "prompt"),
        (RESPONSES, "input"),
        (EMBEDDINGS, "input"),
        (EMBEDDINGS, "messages"),
    ],
)
def test_nothing_is_a_prompt_of_nothing(path: str, field: str) -> None:
    prompt = read(path, **{field: []})
    assert (prompt.text, prompt_tokens(prompt)) == (b"", 0)


@pytest.mark.parametrize("model", [None, ""])
def test_an_engine_has_a_model_of_its_own_for_who_names_none(model: str | None) -> None:
    assert read(COMPLETIONS, prompt="x", model=model).model == ""


@pytest.mark.parametrize("field", ["messages", "input"])
def test_embeddings_of_several_conversations_go_by_the_first(field: str) -> None:
    other = {"role": "user", "content": "other"}
    first = read(EMBEDDINGS, **{field: [[USER], [other]]})
    assert first == read(EMBEDDINGS, **{field: [USER]})
    assert first.text == b"\xffuser\xfehello"


def test_a_body_that_would_be_too_many_objects_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvtier_scorer.picker.gateway.bodies.parse_body", pytest.fail)
    assert read_prompt(COMPLETIONS, b"[" + b"{}," * (MOST_CONTAINERS + 1) + b"{}]") is UNKNOWN_PROMPT


@pytest.mark.parametrize("prefix", ["", "/gateway/a", "/v1/x"])
@pytest.mark.parametrize("after", ["", "/", "?a=/v1/embeddings"])
def test_any_prefix_and_query_may_be_around_a_path(prefix: str, after: str) -> None:
    assert read(prefix + COMPLETIONS + after, prompt="hello").text == b"hello"


@pytest.mark.parametrize("path", ["", "/", "/v1/models", "/v1/chat/completions/render", "/v2/completions"])
def test_a_path_that_is_no_api_has_no_prompt_whatever_its_body(path: str) -> None:
    assert read_prompt(path, b"\x00 no JSON") is UNKNOWN_PROMPT


def test_model_and_salt_keep_prefixes_apart() -> None:
    prompt = read(COMPLETIONS, prompt="x", model="an-adapter", cache_salt="secret")
    assert (prompt.model, prompt.salt) == ("an-adapter", "secret")
    assert not read(COMPLETIONS, prompt="x", cache_salt=None).salt


DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("path", "body", "field", "problem"),
    [
        (CHAT, {}, "messages", "is required"),
        (CHAT, {"messages": "x"}, "messages", "must be a list, not a string"),
        (CHAT, user([{"type": "image_url", "x": DEEP}]), "messages[0].content[0]", "is nested too deeply"),
        (CHAT, user("x", tool_calls=DEEP), "messages[0]", "is nested too deeply"),
        (CHAT, {"messages": [USER], "tools": DEEP}, "tools", "is nested too deeply"),
        (CHAT, {"messages": [USER], "model": 7}, "model", "must be a string, not a number"),
        (CHAT, {"messages": [USER], "cache_salt": {}}, "cache_salt", "must be a string, not an object"),
        (COMPLETIONS, {}, "prompt", "is required"),
        (COMPLETIONS, {"prompt": {}}, "prompt", "must be a string or a list, not an object"),
        (COMPLETIONS, {"prompt": ["a", 1]}, "prompt[1]", "must be a string as the first, not a number"),
        (
            COMPLETIONS,
            {"prompt": [[1], "a"]},
            "prompt[1]",
            "must be a list of tokens as the first, not a string",
        ),
        (COMPLETIONS, {"prompt": [1, "a"]}, "prompt", "must be token numbers"),
        (COMPLETIONS, {"prompt": [1, -1]}, "prompt", "must be token numbers"),
        (COMPLETIONS, {"prompt": [1.5]}, "prompt", "must be token numbers"),
        (COMPLETIONS, {"prompt": [1 << 32]}, "prompt", "must be token numbers"),
        (COMPLETIONS, {"prompt": [[1, None]]}, "prompt[0]", "must be token numbers"),
        (COMPLETIONS, {"prompt_embeds": DEEP}, "prompt_embeds", "is nested too deeply"),
        (RESPONSES, {}, "input", "is required"),
        (RESPONSES, {"input": 1}, "input", "must be a string or a list, not a number"),
        (EMBEDDINGS, {}, "input", "is required"),
        (EMBEDDINGS, {"input": True}, "input", "must be a string or a list, not a boolean"),
        (EMBEDDINGS, {"messages": {}}, "messages", "must be a list, not an object"),
    ],
)
def test_an_error_names_the_field(path: str, body: Mapping[str, Any], field: str, problem: str) -> None:
    with pytest.raises(BadFieldError) as caught:
        read(path, **body)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: {problem}")
    error = json.loads(error_body(caught.value))["error"]
    assert error == {
        "message": str(caught.value),
        "type": "invalid_request_error",
        "param": field,
        "code": 400,
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "the body is not JSON"),
        (b'{"model": "m"', "the body is not JSON"),
        (b'{"model": "\xff"}', "the body is not JSON"),
        (b'{"model": "\\ud800"}', "the body is not JSON"),
        (b'{"model": 1e999}', "the body is not JSON"),
        (b"[" * 2000 + b"]" * 2000, "the body is not JSON"),
        (b"[1]", "the body must be a JSON object, not a list"),
        (b"null", "the body must be a JSON object, not null"),
    ],
)
def test_what_is_no_json_object_is_told_so(body: bytes, problem: str) -> None:
    with pytest.raises(BadRequestError, match=problem):
        read_prompt(CHAT, body)
