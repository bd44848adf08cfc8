"""The loop of the engine's process, which alone may touch scheduler, device cache and tiers.

Another thread has something done there by the queue through which the engine gets its requests: the loop
looks at it before each step, and waits at it while there is nothing to do.

Source: vLLM 0.32 and 0.33, EngineCore and EngineCoreProc in v1/engine/core.py.
"""

import sys
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError  # Python 3.10's is no TimeoutError
from typing import Any, Final, TypeVar

from vllm.sampling_params import SamplingParams
from vllm.v1.engine.core import EngineCore
from vllm.v1.request import Request

from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.upstream.compat import require_attributes

_T = TypeVar("_T")
_DEED: Final = object()
"""In the place of a request's type: what comes with it is to be called."""
_LOOP_ATTRIBUTES: Final = ("input_queue", "_handle_client_request", "scheduler")


class EngineBusyError(ConnectorError):
    """The engine has not come to it in time: a step takes long, or it has ended."""


class EngineLoop:
    """An engine that runs in a loop of its own."""

    def __init__(self, engine: EngineCore) -> None:
        """Raises UnsupportedEngineError: the engine lacks what is reached for, which is named."""
        require_attributes(engine, _LOOP_ATTRIBUTES)
        self._engine = engine
        handle = engine._handle_client_request

        def handle_or_do(kind: object, request: Any) -> None:  # noqa: ANN401 - vLLM's own
            if kind is _DEED:
                request()
            else:
                handle(kind, request)

        engine._handle_client_request = handle_or_do

    def call(self, deed: Callable[[], _T], timeout_s: float) -> _T:
        """Have something done between two steps and return what it returns; raises what it raises.

        Raises EngineBusyError: it has not begun in time, and never will.
        """
        done = Future[_T]()

        def do() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(deed())
            except BaseException as error:  # noqa: BLE001 - whoever waits is told; the engine goes on
                done.set_exception(error)

        self._engine.input_queue.put_nowait((_DEED, do))
        try:
            return done.result(timeout_s)
        except FutureTimeoutError:
            if done.cancel():
                raise EngineBusyError(f"the engine has not come to it within {timeout_s:g} s") from None
            return done.result()


def engine_being_made() -> EngineCore | None:
    """Return the engine whose making has called this: nothing that it makes is told of it."""
    frame = sys._getframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, EngineCore):
            return owner
        frame = frame.f_back  # type: ignore[assignment] # None for the last
    return None


def has_loop(engine: EngineCore) -> bool:
    """Tell whether an engine has a loop; without one it runs when its caller has it do a step."""
    return hasattr(engine, "input_queue")


def hashed_prompt(engine: EngineCore, tokens: list[int], cache_salt: str) -> Request:
    """Return a request that nobody makes, with the hashes that one with this prompt has."""
    return Request(
        request_id="kvtier-control",
        prompt_token_ids=tokens,
        sampling_params=SamplingParams(max_tokens=1),
        pooling_params=None,
        cache_salt=cache_salt or None,
        block_hasher=engine.request_block_hasher,
    )
