"""The thread that reads and writes the disk tier's blocks, so that nobody else ever waits for a disk.

It checks what it reads, puts down what it has written, and lets go of a disk that fails or hangs until that
can be used again. The thread that owns the index orders and is told; neither waits for the other.
"""

import threading
import time
from collections.abc import Iterable

from kvtier_connector.core.disk.transfers.loop import DiskLoop
from kvtier_connector.core.disk.transfers.messages import Event, Message
from kvtier_connector.errors import DiskError


class DiskThread:
    """Serves orders, beginning now.

    Args:
        loop: what it does; nobody else may take a turn of it.
    """

    def __init__(self, loop: DiskLoop) -> None:
        self._loop = loop
        self._check_s = loop.timings.check_s
        self._write_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name="kvtier-disk", daemon=True)
        self._thread.start()

    def send(self, messages: Iterable[Message]) -> None:
        """Take messages on and return at once."""
        self._loop.inbox.extend(messages)
        self._loop.engine.wake()

    def take_events(self) -> list[Event]:
        """Return what has happened since the last call; all of that call's has been taken note of."""
        return self._loop.outbox.take()

    def wait(self, timeout_s: float) -> bool:
        """Return when there is an event, or after the timeout; tells which."""
        return self._loop.outbox.wait(timeout_s)

    def has_begun(self) -> bool:
        """Tell whether the disk has as much of what was ordered as it takes at a time."""
        return self._loop.has_begun

    def is_stuck(self) -> bool:
        """Tell whether the operating system has not let go of the thread for longer than a block may take."""
        return time.monotonic() - self._loop.turned_at_s > self._loop.timeout_s + self._check_s

    def close(self, timeout_s: float) -> None:
        """End the thread once it has written what waits to be; a disk that takes longer is not waited for."""
        self._write_until_s = time.monotonic() + timeout_s - 2 * self._check_s
        self._loop.is_closing = True
        self._loop.engine.wake()
        self._thread.join(timeout_s)
        self._loop.outbox.acknowledge()

    def _run(self) -> None:
        while not self._loop.is_closing:
            try:
                self._loop.turn()
            except DiskError as error:
                self._loop.go_down(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on without a disk
                self._loop.go_down(f"{type(error).__name__}: {error}")
                time.sleep(self._check_s)
        self._loop.finish(self._write_until_s)
