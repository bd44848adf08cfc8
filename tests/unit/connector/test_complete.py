"""What the connector needs beside vLLM is there, or one line says what is not."""

import re
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvtier_connector import complete
from kvtier_connector.errors import UnsupportedEngineError

ROOT = Path(__file__).parents[3]


def lacking(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name in names else find_spec(name)

    monkeypatch.setattr(complete, "find_spec", found)


def test_it_looks_for_all_that_the_wheel_s_extra_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = [re.split(r"[^\w-]", need)[0] for need in project["optional-dependencies"]["connector"]]
    assert set(complete.NEEDED) == set(extra)


def test_nothing_is_said_where_all_is_there() -> None:
    assert complete.missing() == ""
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
    lacking(monkeypatch, "xxhash", "liburing")
    with pytest.raises(
        UnsupportedEngineError, match="kvtier's connector needs liburing and xxhash, which "
    ) as why:
        complete.require_all()
    assert log.read_text() == f"{why.value}\n"
    assert log.read_text().count("\n") == 1
    assert (
        'build the engine\'s image with connector/Containerfile, or pip install "kvtier[connector]"'
        in str(why.value)
    )


def test_nothing_is_written_where_kubernetes_does_not_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(complete, "_TERMINATION_LOG", tmp_path / "none")
    lacking(monkeypatch, "numba")
    with pytest.raises(UnsupportedEngineError, match="needs numba, which"):
        complete.require_all()
    assert list(tmp_path.iterdir()) == []
