"""Signals that would end a benchmark while it starts a child."""

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from kvtier_connector.bench.engines.held_signals import held_signals


class Ended(BaseException):
    """What a handler raises."""


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def ending(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    def end(number: int, frame: FrameType | None) -> None:
        raise Ended(number, frame)

    number: signal.Signals = request.param
    before = signal.signal(number, end)
    yield number
    signal.signal(number, before)


def hold_one(number: signal.Signals, done: list[str], error: Exception | None = None) -> None:
    with held_signals():
        os.kill(os.getpid(), number)
        done.append("all of it")
        if error:
            raise error


@pytest.mark.parametrize("error", [None, ValueError()])
def test_what_comes_meanwhile_is_handled_at_the_end(ending: signal.Signals, error: Exception | None) -> None:
    done: list[str] = []
    with pytest.raises(Ended):
        hold_one(ending, done, error)
    assert done


def test_afterwards_it_is_as_before(ending: signal.Signals) -> None:
    with held_signals():
        pass
    with pytest.raises(Ended):
        os.kill(os.getpid(), ending)
