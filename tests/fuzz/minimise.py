"""The least of an input that still shows a fault."""

from collections.abc import Callable


def fault(run: Callable[[bytes], None], data: bytes) -> type[Exception] | None:
    """Return what an input raises, or None."""
    try:
        run(data)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error)
    return None


def minimise(run: Callable[[bytes], None], data: bytes) -> bytes:
    """Leave out ever smaller parts as long as the same kind of fault shows (Zeller's ddmin, simplified)."""
    kind = fault(run, data)
    size = len(data) // 2
    while size and kind:
        start = 0
        while start < len(data):
            less = data[:start] + data[start + size :]
            if fault(run, less) is kind:
                data = less
            else:
                start += size
        size //= 2
    return data
