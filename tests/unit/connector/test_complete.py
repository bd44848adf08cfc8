"""What the connector needs beside vLLM is there, or one line says what is not."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kvtier_connector import complete
from kvtier_connector.errors import UnsafeFolderError, UnsupportedEngineError

ROOT = Path(__file__).parents[3]


def lacking(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)  # as import has it: not to be imported


def test_it_looks_for_all_that_the_wheel_s_extra_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = [re.split(r"[^\w-]", need)[0] for need in project["optional-dependencies"]["connector"]]
    assert {*complete.NEEDED, *complete.OPTIONAL} == set(extra)


def test_nothing_is_said_where_all_is_there() -> None:
    assert complete.missing_packages_text() == ""
    complete.require_all()
    command = [sys.executable, "-m", "kvtier_connector.complete"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_missing_is_named_in_one_line_where_kubernetes_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    monkeypatch.setattr(complete, "_TERMINATION_LOG", log)
    lacking(monkeypatch, "xxhash", "numba", "liburing")
    with pytest.raises(
        UnsupportedEngineError, match="kvtier's connector needs numba and xxhash, which "
    ) as why:
        complete.require_all()
    assert log.read_text() == f"{why.value}\n"
    assert log.read_text().count("\n") == 1
    assert 'use vLLM\'s own image with that of kvtier/connector, or pip install "kvtier[connector]"' in str(
        why.value
    )


def test_nothing_is_written_where_kubernetes_does_not_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(complete, "_TERMINATION_LOG", tmp_path / "none")
    lacking(monkeypatch, "numba")
    with pytest.raises(UnsupportedEngineError, match="needs numba, which"):
        complete.require_all()
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_at_start_is_the_termination_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "termination-log"
    log.write_text("of the start before, which was longer than this one's")
    monkeypatch.setattr(complete, "_TERMINATION_LOG", log)
    with pytest.raises(UnsafeFolderError, match="another's"), complete.refusals():
        raise UnsafeFolderError("disk_path: another's")
    assert log.read_text() == "disk_path: another's\n"


@pytest.mark.parametrize("place", ["a link", "a FIFO that nobody reads"])
def test_what_is_no_file_in_the_termination_log_s_place_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    log, victim = tmp_path / "termination-log", tmp_path / "victim"
    victim.write_text("kept")
    if place == "a link":
        log.symlink_to(victim)
    else:
        os.mkfifo(log)
    monkeypatch.setattr(complete, "_TERMINATION_LOG", log)
    with pytest.raises(UnsupportedEngineError, match="no"):
        complete.refuse(UnsupportedEngineError("no"))
    assert victim.read_text() == "kept"
