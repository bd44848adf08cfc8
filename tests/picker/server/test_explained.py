"""/explain of paths: what the picker reads is explained, and of what it does not read it says so."""

import json

import pytest
from tests.picker.harness.client import get, post
from tests.picker.harness.pickers.own import Own

BODY = b'{"model": "fake", "prompt": "once upon a time"}'


@pytest.fixture(scope="module")
def tls() -> bool:
    """Explanations are not the gateway's to ask for: how that one asks makes no difference."""
    return False


@pytest.mark.parametrize("path", ["/v1/completions", "/team/v1/completions/", "/v1/completions?x=/v1/y"])
def test_a_prompt_is_explained_under_any_prefix(picker: Own, path: str) -> None:
    answer = post(picker.explain + path, BODY)
    assert answer.status == 200
    assert json.loads(answer.body)["prompt_tokens"] > 0


@pytest.mark.parametrize("path", ["/v1/bogus", "/v1", "/v1/completions/x", "/bogus"])
def test_what_it_does_not_read_is_not_explained(picker: Own, path: str) -> None:
    answer = post(picker.explain + path, BODY)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (404, 404)
    assert error["message"].startswith(f"{path}: ")
    assert "/v1/chat/completions" in error["message"]
    assert "\n" not in error["message"]


def test_pods_alone(picker: Own) -> None:
    answer = get(picker.explain)
    assert answer.status == 200
    assert json.loads(answer.body)["prompt_tokens"] == 0
