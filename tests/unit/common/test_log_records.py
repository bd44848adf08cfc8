"""Log lines of operator and picker, in each of their forms."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from kvtier_operator.reconcile.observability import set_up_logs as of_operator
from kvtier_scorer.picker.observability.logs import LogFormat
from kvtier_scorer.picker.observability.logs import set_up_logs as of_picker

FORGED = "a\x1b[31m\n2026-11-20 ERROR b\r\u2028\x9b2J\u202ec"
SET_UPS: dict[str, Callable[[], None]] = {
    "operator plain": lambda: of_operator("plain", "info"),
    "operator json": lambda: of_operator("json", "info"),
    "picker plain": lambda: of_picker(LogFormat.PLAIN, "info"),
    "picker json": lambda: of_picker(LogFormat.JSON, "info"),
}


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("name", SET_UPS)
def test_text_of_others_forges_no_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    SET_UPS[name]()
    log = logging.getLogger("kvtier.test")
    log.warning("%s and %s", FORGED, "x" * 1_000_000)
    log.error("an error", exc_info=ValueError(FORGED * 100))
    message, *error = capsys.readouterr().err.splitlines()
    assert "a?[31m 2026-11-20 ERROR b ?2J?c and xxx" in message
    assert len(message) < 4500
    assert all(line.isprintable() and len(line) < 8000 for line in (message, *error))
    if "json" in name:
        assert json.loads(message)["message"].endswith("x ...")
        [line] = error
        assert "ValueError: a?[31m" in line
