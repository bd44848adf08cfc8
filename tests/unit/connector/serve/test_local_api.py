"""An engine's own API, asked by who runs beside it."""

import time

import pytest
from tests.unit.connector.serve.fake_api import serving

from kvtier_common.errors import MalformedError
from kvtier_common.hints import Hints, Priority
from kvtier_connector.serve.local_api import (
    Computed,
    LocalApiError,
    Prompt,
    compute_prompts,
    read_prompt,
    read_prompts,
    served_model,
    tokens_of,
)

HINTS = Hints(retain_s=60, priority=Priority.HIGH)


def _soon() -> float:
    return time.monotonic() + 60


def test_each_form_of_a_prompt_is_computed_with_one_token_and_its_hints() -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]}
    prompts = [Prompt(text="t"), read_prompt(chat), Prompt(tokens=(5, 6), cache_salt="secret")]
    with serving() as (port, asked):
        computed = list(compute_prompts(prompts, port=port, hints=HINTS, until_s=_soon()))
    assert computed == [Computed(7, 4)] * 3
    hinted = {
        "model": "the-model",
        "max_tokens": 1,
        "temperature": 0,
        "kv_transfer_params": {"kvtier": {"retain": 60, "priority": "high"}},
    }
    assert [(path, body) for path, body, _ in asked] == [
        ("/v1/completions", {**hinted, "prompt": "t"}),
        ("/v1/chat/completions", {**hinted, **chat}),
        ("/v1/completions", {**hinted, "prompt": [5, 6], "cache_salt": "secret"}),
    ]


def test_one_that_fails_is_told_in_a_line_and_the_others_are_computed() -> None:
    prompts = [Prompt(text="too long"), Prompt(text="no JSON"), Prompt(text="t")]
    with serving() as (port, _):
        long, odd, fine = compute_prompts(prompts, port=port, model="m", until_s=_soon())
    assert long.error.endswith("/v1/completions: 400: the prompt is too long")
    assert "\n" not in odd.error
    assert odd.error
    assert fine == Computed(7, 4)


def test_vllms_key_is_sent_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (port, asked):
        monkeypatch.setenv("VLLM_API_KEY", "k")
        list(compute_prompts([Prompt(text="t")], port=port, until_s=_soon()))
        monkeypatch.delenv("VLLM_API_KEY")
        list(compute_prompts([Prompt(text="t")], port=port, until_s=_soon()))
    assert [key for _, _, key in asked] == ["Bearer k", ""]


def test_token_ids_are_the_engines_own() -> None:
    with serving() as (port, asked):
        assert tokens_of(Prompt(text="t"), port=port, until_s=_soon()) == (1, 2, 3)
        assert tokens_of(Prompt(tokens=(9,)), port=port, until_s=_soon()) == (9,)
    assert [(path, body) for path, body, _ in asked] == [("/tokenize", {"prompt": "t"})]


def test_an_engine_that_does_not_answer_is_one_line_with_its_address() -> None:
    with serving() as (port, _):
        pass
    with pytest.raises(LocalApiError, match=rf"^http://127\.0\.0\.1:{port}/v1/models: .+$"):
        served_model(port=port, until_s=_soon())
    [late] = compute_prompts([Prompt(text="t")], port=port, model="m", until_s=time.monotonic())
    assert late.error.endswith("the time is over")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"prompt": ""},
        {"prompt": 5},
        {"tokens": [True]},
        {"tokens": ["1"]},
        {"messages": ["hi"]},
        {"prompt": "a", "tokens": [1]},
        {"prompt": "a", "cache_salt": 5},
        {"quest": "a"},
    ],
)
def test_what_is_no_prompt_is_refused_with_what_would_be(value: object) -> None:
    with pytest.raises(MalformedError, match=r'"prompt".*"messages".*"tokens"'):
        read_prompt(value)


def test_lines_are_read_and_a_bad_one_is_named() -> None:
    assert list(read_prompts(['{"prompt": "a"}\n', "\n", '{"tokens": [1, 2]}'])) == [
        Prompt(text="a"),
        Prompt(tokens=(1, 2)),
    ]
    with pytest.raises(MalformedError, match=r"^line 2: "):
        list(read_prompts(['{"prompt": "a"}', "{"]))
