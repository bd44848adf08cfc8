"""Ctrl-C and SIGTERM while a child is being started: they wait until it can be ended as well."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final

_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_signals() -> Iterator[None]:
    """What comes while the context lasts is handled when it ends; other threads have no signals to hold.

    Between a child's start and the line that sees to its end, a handler's exception would leave it running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    def hand_on() -> None:
        if came:
            signal.raise_signal(came[0])

    with ExitStack() as stack:
        # last of all: then the handlers are back, each of them, whatever one of them raises
        stack.callback(hand_on)
        for number in _ENDINGS:
            stack.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, hold)
        yield
