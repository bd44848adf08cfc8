"""Where the lock of several API servers is, and what comes of a machine that has no place for it."""

import errno
import multiprocessing
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier_connector.serve.turns import Turn, turn_of_server

PORT = 8000


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of several API servers that one command has started."""
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(pid=1))


def test_of_servers_that_one_command_has_started_one_at_a_time_has_the_turn(tmp_path: Path) -> None:
    first, second = (turn_of_server(PORT, str(tmp_path)) for _ in range(2))
    assert (first.take(), second.take()) == (True, False)
    first.tell('{"prefixes": 1}')
    assert second.heard() == {"prefixes": 1}
    first.close()
    second.close()


def test_where_nothing_can_be_written_each_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    turns = [turn_of_server(PORT, "/proc/kvtier") for _ in range(2)]
    assert [turn.take() for turn in turns] == [True, True]


def test_a_full_file_system_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    turn = Turn(tmp_path / "turn")
    assert turn.take()
    monkeypatch.setattr(os, "pwrite", full)
    turn.tell('{"prefixes": 1}')
    turn.close()
