"""Lives of engines that are none, for what is asked of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvtier_connector.bench.comparison import Life


def fake_life(engines: list[Any], make: Callable[[dict[str, Any] | None], Any]) -> Callable[..., Any]:
    @contextmanager
    def life(settings: dict[str, Any], transfer: dict[str, Any] | None, **_: object) -> Iterator[Life]:
        assert "kv_transfer_config" not in settings
        engine = make(transfer)
        engines.append(engine)
        yield Life(engine, 20.0)

    return life
