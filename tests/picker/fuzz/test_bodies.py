"""Random and mutated request bodies: a prompt, or an error for the client, and nothing else."""

import json
from random import Random

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.picker.fuzz.inputs import BODIES, PATHS
from tests.picker.fuzz.mutations import mutate, seeded_random

from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.gateway.bodies import read_prompt
from kvtier_scorer.picker.gateway.protocol.messages import error_body
from kvtier_scorer.scheduling.model import prompt_tokens

MUTATIONS = 8_000
RANDOM = 2_000
FIELDS = (
    "model", "messages", "prompt", "input", "role", "content", "type", "text", "cache_salt", "tools", "id",
    "instructions", "prompt_embeds", "chat_template", "name",
)  # fmt: skip
DEEP = json.loads("[" * 300 + "]" * 300)
SCALARS = (None, True, 0, -1, 2**32, 2**64, 1.5, 1e300, "", "user", "text", "a\u2028b", "\x00", "fake", DEEP)


def json_value(random: Random, depth: int = 0) -> object:
    """Any value; of the fields that APIs have."""
    match random.randrange(4 if depth < 5 else 2):
        case 2:
            return [json_value(random, depth + 1) for _ in range(random.randrange(4))]
        case 3:
            return json_object(random, depth + 1)
    return random.choice(SCALARS)


def json_object(random: Random, depth: int = 0) -> dict[str, object]:
    return {random.choice(FIELDS): json_value(random, depth) for _ in range(random.randrange(6))}


def check(path: str, body: bytes) -> bool:
    """Whether it is a prompt."""
    refused: RefusedRequestError | None = None
    try:
        assert prompt_tokens(read_prompt(path, body)) >= 0
    except RefusedRequestError as error:
        refused = error
    if refused is not None:
        assert refused.status == 400
        assert "\n" not in orjson.loads(error_body(refused))["error"]["message"]
    return refused is None


def test_mutated_bodies_are_prompts_or_errors_for_the_client() -> None:
    random = seeded_random(6)
    prompts = sum(check(random.choice(PATHS), mutate(random, BODIES)) for _ in range(MUTATIONS))
    assert MUTATIONS // 20 < prompts < MUTATIONS // 2, "mutations that break all, or none, test little"


def test_random_objects_are_prompts_or_errors_for_the_client() -> None:
    random = seeded_random(7)
    for _ in range(RANDOM):
        body = {"model": "fake", **json_object(random)}
        check(random.choice(PATHS), json.dumps(body).encode())


@settings(max_examples=300)
@given(st.sampled_from(PATHS), st.one_of(st.binary(max_size=200), st.text(max_size=50).map(str.encode)))
def test_random_bytes_are_prompts_or_errors_for_the_client(path: str, body: bytes) -> None:
    check(path, body)
