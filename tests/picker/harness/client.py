"""One request to a gateway, as a client without a library's retries makes it."""

import contextlib
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tests.picker.harness.engine import ENGINE

_TIMEOUT_S: Final = 180.0
"""A real engine takes 7 s for 700 tokens on two slow cores, and several times that beside another test's."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        body: All of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def engine(self) -> str:
        """`ip:port` of the engine that answered; empty where none did."""
        return self.headers.get(ENGINE.decode(), "")


def get(url: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Gets over a connection of its own."""
    return _ask("GET", url, None, headers or {})


def post(url: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    """Posts JSON over a connection of its own."""
    return _ask("POST", url, body, {"content-type": "application/json", **(headers or {})})


def _ask(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    try:
        # one that answers before it has read the whole body may close while it is being sent
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, parts.path, body, dict(headers))
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, answer.read())
    finally:
        connection.close()
