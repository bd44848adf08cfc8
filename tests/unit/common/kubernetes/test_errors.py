"""What the API server says, by whether trying again can help."""

import pytest

from kvtier_common.errors import PermanentError, RetryableError
from kvtier_common.kubernetes.answers import (
    ExpiredError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
)
from kvtier_common.kubernetes.client import api_error

_TERMINATING = {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}


@pytest.mark.parametrize("code", [401, 403, 409, 410, 429, 500, 503, 504])
def test_it_can_go_away(code: int) -> None:
    assert isinstance(api_error(code, {}, "no"), RetryableError)


@pytest.mark.parametrize("code", [400, 404, 422])
def test_it_cannot(code: int) -> None:
    assert isinstance(api_error(code, {}, "no"), PermanentError)


def test_the_kinds_that_are_told_apart() -> None:
    assert isinstance(api_error(403, _TERMINATING, "no"), NamespaceTerminatingError)
    assert isinstance(api_error(410, {}, "no"), ExpiredError)
    assert isinstance(api_error(404, {"details": None}, "no"), NotFoundError)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), (None, None), ("Wed, 21 Oct 2015", None)])
def test_how_long_a_server_asks_to_wait(header: str | None, seconds: float | None) -> None:
    error = api_error(429, {}, "later", header)
    assert isinstance(error, ServerError)
    assert error.retry_after_s == seconds


@pytest.mark.parametrize(
    "value",
    ['"hf_secret"', '"a \\"hf_secret\\" b"', 'core.EnvVar{Name:"A", Value:"hf_secret", From:(*x)(nil)}'],
)
def test_no_value_of_a_field_is_repeated(value: str) -> None:
    said = str(
        api_error(422, {}, f"Pod is invalid: spec.env[0].value: Invalid value: {value}: must be shorter")
    )
    assert said == "Pod is invalid: spec.env[0].value: Invalid value: (left out): must be shorter"


def test_a_long_story_is_cut() -> None:
    assert len(str(api_error(403, {}, "denied " * 100_000))) < 2_100


def test_what_to_do_about_credentials_that_are_not_taken() -> None:
    """The server's own message is one word."""
    error = api_error(401, {"message": "Unauthorized"}, "GET /apis: 401")
    assert str(error) == "Unauthorized: the API server does not take these credentials; renew them"
