"""Long streams that are under way all the time, and how each of them ends."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tests.shared.waiting import eventually

_SILENCE_S: Final = 120.0
_DATA: Final = b"data: "


@dataclass(slots=True)
class Stream:
    """One request, from when it was sent.

    Attributes:
        begun_s: When, by time.monotonic().
        tokens: How many have come.
        ended_s: When its end was seen; None while it is under way.
        trouble: What is wrong with its end; empty if nothing is.
    """

    begun_s: float
    tokens: int = 0
    ended_s: float | None = None
    trouble: str = ""


@dataclass
class Streams:
    """Clients of which each asks for the next answer when one has ended.

    Attributes:
        url: Of a gateway or a Service.
        model: Name of the model.
        tokens: Length of an answer.
        sent: All requests.
    """

    url: str
    model: str
    tokens: int
    sent: list[Stream] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    @property
    def under_way(self) -> int:
        """Streams of which something has come, and not all."""
        return sum(each.tokens > 0 and each.ended_s is None for each in self.sent)

    @property
    def whole(self) -> int:
        """Streams that came to their end as asked for."""
        return sum(each.ended_s is not None and not each.trouble for each in self.sent)

    @property
    def longest_s(self) -> float:
        """How long the longest took that has ended."""
        return max((each.ended_s - each.begun_s for each in self.sent if each.ended_s), default=0.0)

    @property
    def shortest_s(self) -> float:
        """How long the shortest took that came to its end as asked for."""
        return min(each.ended_s - each.begun_s for each in self.sent if each.ended_s and not each.trouble)

    @property
    def troubles(self) -> list[str]:
        """What went wrong, one line a stream."""
        return [each.trouble for each in self.sent if each.trouble]

    def keep_asking(self, client: int) -> None:
        """Ask until it is enough."""
        turn = 0
        while not self._enough.is_set():
            stream = Stream(time.monotonic())
            self.sent.append(stream)
            try:
                self._follow(stream, f"{client} {turn} {stream.begun_s}: lorem ipsum dolor sit amet")
            except (OSError, http.client.HTTPException, ValueError) as error:
                stream.trouble = f"{type(error).__name__}: {error}"
            stream.ended_s = time.monotonic()
            if stream.trouble:
                at_s, lasted_s = stream.begun_s - self.sent[0].begun_s, stream.ended_s - stream.begun_s
                after = f"{lasted_s:.1f} s and {stream.tokens} tokens"
                stream.trouble = f"begun at {at_s:.1f} s, ended after {after}: {stream.trouble}"
            turn += 1

    def stop(self) -> None:
        """Ask for no more."""
        self._enough.set()

    def _follow(self, stream: Stream, prompt: str) -> None:
        asked = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": self.tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        parts = urlsplit(self.url)
        assert parts.hostname
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_SILENCE_S)
        try:
            connection.request(
                "POST", "/v1/completions", json.dumps(asked).encode(), {"content-type": "application/json"}
            )
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                stream.trouble = f"{answer.status} {answer.read().decode(errors='replace').strip()}"
                return
            stream.trouble = self._trouble(stream, answer)
        finally:
            connection.close()

    def _trouble(self, stream: Stream, answer: http.client.HTTPResponse) -> str:
        """Read an answer to its end; tell what is wrong with it."""
        reason, counted, done = None, 0, False
        for event in _events(answer):
            if event is None:
                done = True
                continue
            if "error" in event:
                return f"an error in the stream: {json.dumps(event['error'])}"
            for choice in event.get("choices", ()):
                stream.tokens += 1
                reason = choice.get("finish_reason") or reason
            counted = (event.get("usage") or {}).get("completion_tokens", counted)
        if reason != "length" or counted != self.tokens or not done:
            return f"finish_reason {reason}, {counted} of {self.tokens} tokens, {'' if done else 'not '}DONE"
        return ""


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any] | None]:
    """Server-sent events; None for the one that says that it is done."""
    while line := answer.readline():
        if line.startswith(_DATA):
            data = line.removeprefix(_DATA).strip()
            yield None if data == b"[DONE]" else json.loads(data)


@contextmanager
def streaming(url: str, model: str, *, clients: int, tokens: int) -> Iterator[Streams]:
    """Begins with every client's first stream under way; ends when the last one has ended."""
    streams = Streams(url, model, tokens)
    threads = [
        threading.Thread(target=streams.keep_asking, args=(number,), daemon=True) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: streams.under_way == clients or streams.troubles, "streams under way")
        yield streams
    finally:
        streams.stop()
        for thread in threads:
            thread.join()
