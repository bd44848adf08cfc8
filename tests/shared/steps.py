"""How many lines of kvtier's own code a call runs: a cost that does not depend on the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(call: Callable[[], object]) -> int:
    """Lines that run in `call`, each as often as it does, and one for each turn of a comprehension."""
    count, before = 0, sys.gettrace()

    def line(_: FrameType, event: str, __: Any) -> Any:  # noqa: ANN401 - as sys.settrace has it
        nonlocal count
        count += event == "line"
        return line

    def enter(frame: FrameType, _: str, __: Any) -> Any:  # noqa: ANN401
        nonlocal count
        if not str(frame.f_globals.get("__name__")).startswith("kvtier_"):
            return None
        count += 1
        return line

    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
