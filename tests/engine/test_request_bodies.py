"""What vLLM's own request classes take, the picker takes."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.unit.scorer.picker.gateway.bodies.any_body import KINDS, bodies, values

from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.gateway.bodies import prompt_and_body

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# Chosen from lists alone: of text and numbers hypothesis would also draw those that stand in modules which
# happen to be loaded, other tests' among them.
WORDS: Final = (
    "", "a", "b c", "1", "1.0", "-1", "true", "null", "\u00e9", "\u4f60\u597d", "\U0001d11e", "\0", "\n", '"',
    "{",
)  # fmt: skip
NUMBERS: Final = (0, 1, 2, 17, -1, 128_000, 2**31, 2**32 - 1, 2**32, 2**63, -(2**64), 2**70)
FRACTIONS: Final = (0.0, 1.0, 0.5, -1.5, 1e-7, 2.0**40, 1e300)
SCALARS: Final = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(FRACTIONS), st.sampled_from(WORDS),
    st.sampled_from(KINDS),
)  # fmt: skip
VALUES: Final = values(SCALARS)
ROLES: Final = st.sampled_from(["user", "system", "assistant", "tool"])
PARTS: Final = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "thinking", "refusal"])},
    optional={"text": SCALARS, "image_url": VALUES},
)
TEXTS: Final = st.sampled_from(WORDS)
CONTENTS: Final = st.one_of(st.none(), TEXTS, st.lists(st.one_of(PARTS, TEXTS), max_size=2))
MESSAGES: Final = st.fixed_dictionaries({"role": ROLES}, optional={"content": CONTENTS, "name": SCALARS})
TOKENS: Final = st.lists(st.sampled_from([number for number in NUMBERS if 0 <= number < 2**32]), max_size=3)
MODEL: Final = {"model": st.one_of(st.none(), TEXTS), "cache_salt": SCALARS}
MANY: Final = st.one_of(
    bodies(VALUES),
    st.fixed_dictionaries({"messages": st.lists(MESSAGES, max_size=2)}, optional=MODEL | {"tools": VALUES}),
    st.fixed_dictionaries(
        {"prompt": st.one_of(TEXTS, TOKENS, st.lists(TOKENS, max_size=2), st.lists(TEXTS, max_size=2))},
        optional=MODEL,
    ),
    st.fixed_dictionaries(
        {
            "input": st.one_of(
                TEXTS,
                TOKENS,
                st.lists(MESSAGES, max_size=2),
                st.lists(st.lists(MESSAGES, max_size=2), max_size=2),
            )
        },
        optional=MODEL | {"instructions": SCALARS},
    ),
)


def numbers_that_are_none(body: object) -> bool:
    """Of tokens: pydantic takes 1.0 and "1" for 1, as no client writes it, and what no vocabulary has."""
    told = [body.get("prompt"), body.get("input")] if isinstance(body, dict) else []
    lists = [value for value in told if isinstance(value, list)]
    lists += [item for value in lists for item in value if isinstance(item, list)]
    return any(map(_is_odd, lists))


def _is_odd(items: list[object]) -> bool:
    numbers = [item for item in items if isinstance(item, int | float)]
    in_words = any(isinstance(item, str) for item in items)
    return any(isinstance(number, float) or not 0 <= number < 2**32 for number in numbers) or bool(
        numbers and in_words
    )


@pytest.fixture(scope="module")
def engines() -> Mapping[str, Callable[[object], object]]:
    """vLLM's validation, by path."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest  # noqa: PLC0415
    from vllm.entrypoints.pooling.embed.protocol import EmbeddingRequest  # noqa: PLC0415

    embedding: TypeAdapter[Any] = TypeAdapter(EmbeddingRequest)
    return {
        "/v1/chat/completions": ChatCompletionRequest.model_validate,
        "/v1/completions": CompletionRequest.model_validate,
        "/v1/embeddings": embedding.validate_python,
    }


def takes(validate: Callable[[object], object], body: object) -> bool:
    try:
        validate(body)
    except Exception:  # noqa: BLE001 - pydantic's, vLLM's, or what its validators stumble over
        return False
    return True


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
def test_what_an_engine_takes_is_not_refused(
    engines: Mapping[str, Callable[[object], object]], path: str
) -> None:
    taken = 0

    @settings(
        max_examples=1000,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(MANY)
    def both(body: object) -> None:
        nonlocal taken
        text = json.dumps(body)
        if numbers_that_are_none(body) or not takes(engines[path], json.loads(text)):
            return
        taken += 1
        try:
            prompt_and_body(path, text.encode())
        except RefusedRequestError as error:
            pytest.fail(f"{text}: {error}")

    both()
    assert taken > 30, "bodies that no engine takes test little"
