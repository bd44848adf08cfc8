"""A prefetch over the socket: bounded, hashed beside the engine's loop, and over when nobody wants it."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from kvtier_connector.vllm.behind.prefetches import Fetched

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
MOST_TOKENS = 8


class Engine:
    """As much of an engine as a prefetch touches, and what was done in its loop."""

    def __init__(self) -> None:
        from kvtier_connector.vllm.control import control  # noqa: PLC0415 - imports vLLM
        from kvtier_connector.vllm.upstream.engine_loop import EngineBusyError  # noqa: PLC0415 - as above

        self.module = control
        self.too_busy = EngineBusyError("a step takes long")
        self.in_loop = False
        self.hashed_in_loop = list[bool]()
        self.is_busy = False
        self.calls = 0
        memory = SimpleNamespace(places=lambda keys: keys[:1])
        self.control = control.Control(
            SimpleNamespace(chunks_of=lambda request: [(4, b"a"), (8, b"b")]),  # type: ignore[arg-type] # noqa: ARG005
            SimpleNamespace(memory=memory, behind=None, chunk_tokens=4),  # type: ignore[arg-type] # as above
            None,  # type: ignore[arg-type] # nothing is asked of it
            rank=0,
            most_tokens=MOST_TOKENS,
            tenants=(),
            hash_prompt=self._hash,
            call=self._call,
            hold=nullcontext,
        )

    def _hash(self, _tokens: list[int], _cache_salt: str) -> Any:  # noqa: ANN401 - vLLM's
        self.hashed_in_loop.append(self.in_loop)

    def _call(self, deed: Callable[[], Any], _timeout_s: float) -> Any:  # noqa: ANN401 - whatever it returns
        self.calls += 1
        if self.is_busy:
            raise self.too_busy
        with self._loop():
            return deed()

    @contextmanager
    def _loop(self) -> Generator[None]:
        self.in_loop = True
        yield
        self.in_loop = False


def order(tokens: int) -> dict[str, object]:
    return {"verb": "prefetch", "tokens": list(range(tokens))}


def test_it_is_hashed_beside_the_loop_and_looked_up_in_it() -> None:
    engine = Engine()
    said = engine.control.answer(order(MOST_TOKENS))
    assert said == {
        "rank": 0,
        "tokens": MOST_TOKENS,
        "in_memory_tokens": 4,
        "coming_tokens": 0,
        "absent_tokens": 4,
    }
    assert (engine.hashed_in_loop, engine.calls) == ([False], 1)


def test_a_prompt_that_no_request_can_have_is_not_even_hashed() -> None:
    engine = Engine()
    assert engine.control.answer(order(MOST_TOKENS + 1)) == {
        "rank": 0,
        "error": "tokens: got 9, this engine's prompts have at most 8",
    }
    assert (engine.hashed_in_loop, engine.calls) == ([], 0)


def test_one_that_nobody_wants_any_more_does_not_wait_for_a_long_step() -> None:
    engine = Engine()
    engine.is_busy = True
    wanted = iter((True, True, False))
    assert "error" in engine.control.answer(order(1), lambda: next(wanted))
    assert engine.calls == 3


def test_nor_for_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.is_busy = True
    monkeypatch.setattr(engine.module, "_ENGINE_S", 0.0)
    assert engine.control.answer(order(1))["error"] == "the engine has not come to it within 0 s"


@pytest.mark.parametrize("wanted", [True, False])
def test_what_has_begun_goes_on_for_a_while_if_somebody_wanted_it(
    wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine()
    tended = list[tuple[str, float]]()
    monkeypatch.setattr(engine.control, "_begin_prefetch", lambda _chunks: ("one", Fetched(0, 1, 1)))
    monkeypatch.setattr(
        threading, "Thread", lambda args, **_: SimpleNamespace(start=lambda: tended.append(args))
    )
    monkeypatch.setattr(engine.control, "_is_open", lambda _name: False)
    assert engine.control.answer(order(1), lambda: wanted)["coming_tokens"] == 4
    assert tended == [("one", 60.0 if wanted else 0.0)]
