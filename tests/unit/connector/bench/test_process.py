"""Signals that would end a benchmark while it starts a child."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from kvtier_connector.bench.engine import children_of, end, held_signals, line_process, runs
from kvtier_connector.errors import ConnectorError


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


DOUBLES = """
import sys
from kvtier_connector.bench.engine import serve
serve(int(sys.argv[1]), lambda question: question["number"] * int(sys.argv[2]), "ready")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "doubles.py").write_text(DOUBLES)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return "doubles"


def test_each_line_has_its_answer(module: str, tmp_path: Path) -> None:
    with line_process(module, "2", name="it", log=tmp_path / "log", environment=os.environ) as process:
        assert process.answer() == "ready"
        assert [process.exchange({"number": number}) for number in (1, 5)] == [2, 10]
    assert (tmp_path / "log").read_text() == ""


def test_who_dies_says_why(module: str, tmp_path: Path) -> None:
    with line_process(module, "x", name="it", log=tmp_path / "log", environment=os.environ) as process:
        assert process.answer() == "ready"
        with pytest.raises(ConnectorError, match=r"(?s)^it died: .*invalid literal for int"):
            process.exchange({"number": 1})


def test_who_does_not_end_is_killed() -> None:
    process = python("import time; time.sleep(60)")
    end(process, patience_s=0.0)
    assert process.returncode == -9


def python(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True)  # noqa: S603 - ours


def test_the_end_is_that_of_its_children_too() -> None:
    child = "import time; time.sleep(1)"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); sys.stdin.read()"
    process = python(parent)
    until = time.monotonic() + 30
    while not (family := children_of(process.pid)) and time.monotonic() < until:
        time.sleep(0.01)
    assert family
    end(process)
    assert process.returncode == 0
    assert not any(map(runs, family))


def test_who_has_ended_already_has_no_children() -> None:
    process = python("")
    process.wait()
    assert children_of(process.pid) == []
    end(process)
