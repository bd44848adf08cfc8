"""Lives of engines that are none, for what is asked of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def fake_life(engines: list[Any], make: Callable[[dict[str, Any] | None], Any]) -> Callable[..., Any]:
    @contextmanager
    def life(settings: dict[str, Any], **_: object) -> Iterator[Any]:
        engine = make(settings["kv_transfer_config"])
        engine.ready_s = 20.0
        engines.append(engine)
        yield engine

    return life
