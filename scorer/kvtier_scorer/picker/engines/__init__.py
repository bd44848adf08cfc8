"""What engines tell of themselves: metrics, KV events, tokens; each pod is followed by a task of its own."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

_LOG: Final = logging.getLogger(__name__)


def pod_task(running: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts the task. It ends by being cancelled, or by a fault of ours, which is logged."""
    task = asyncio.create_task(running, name=name)
    task.add_done_callback(_on_end)
    return task


def _on_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _LOG.error("%s ended: %r", task.get_name(), error, exc_info=error)
