"""The control socket: who reaches it, and what it makes of what comes."""

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kvtier_connector.core.control import socket_server
from kvtier_connector.core.control.client import ControlError, ask, socket_name, sockets_in
from kvtier_connector.core.control.socket_server import MOST_CLIENTS, ControlServer
from kvtier_connector.errors import SettingError

ENOUGH_S = 60.0
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder whose path is short enough for a socket, and that is not there yet."""
    with TemporaryDirectory(prefix="kvtier-") as parent:
        yield Path(parent) / "run" / "control"


@contextmanager
def _serving(folder: Path, answer: Answer = dict, rank: int = 0) -> Generator[Path]:
    server = ControlServer(folder, socket_name(rank), answer)
    try:
        yield folder / socket_name(rank)
    finally:
        server.close()


def test_an_order_is_answered_and_the_socket_is_this_users_alone(folder: Path) -> None:
    with _serving(folder) as path:
        assert ask(path, {"verb": "status"}, timeout_s=ENOUGH_S) == {"verb": "status"}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_every_engines_socket_is_found_by_rank(folder: Path) -> None:
    assert sockets_in(folder) == []
    with ExitStack() as stack:
        paths = [stack.enter_context(_serving(folder, rank=rank)) for rank in (10, 2, 0)]
        (folder / "engine-x.sock").touch()
        assert sockets_in(folder) == paths[::-1]


def test_root_is_answered_whoever_the_engine_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _serving(folder) as path:
        monkeypatch.setattr(socket_server, "_user_of", lambda _connection: 0)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert ask(path, {"verb": "status"}, timeout_s=ENOUGH_S) == {"verb": "status"}


def test_another_user_gets_no_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _serving(folder) as path:
        monkeypatch.setattr(socket_server, "_user_of", lambda _connection: os.geteuid() + 1)
        with pytest.raises(ControlError):
            ask(path, {"verb": "status"}, timeout_s=ENOUGH_S)


@pytest.mark.parametrize("line", [b"{\n", b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_is_no_object_is_answered_with_why_and_the_next_is_done(
    folder: Path, line: bytes
) -> None:
    with _serving(folder) as path, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(line + b'{"verb": "status"}\n')
        with client.makefile("rb") as answers:
            assert json.loads(answers.readline()).keys() == {"error"}
            assert json.loads(answers.readline()) == {"verb": "status"}


def test_a_line_too_long_ends_the_connection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_server, "MOST_LINE_BYTES", 64)
    with _serving(folder) as path, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b" " * 65)
        with client.makefile("rb") as answers:
            assert json.loads(answers.readline()) == {"error": "more than 64 bytes"}
            assert answers.read() == b""


def test_clients_beyond_the_bound_wait_and_are_then_served(folder: Path) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    most = 0
    lock = threading.Lock()

    def slow(order: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal most
        with lock:
            most += 1
        begun.release()
        assert go_on.wait(ENOUGH_S)
        with lock:
            most -= 1
        return order

    with _serving(folder, slow) as path:
        clients = [
            threading.Thread(target=ask, args=(path, {"n": number}), kwargs={"timeout_s": ENOUGH_S})
            for number in range(MOST_CLIENTS + 2)
        ]
        for client in clients:
            client.start()
        for _ in range(MOST_CLIENTS):
            assert begun.acquire(timeout=ENOUGH_S)
        assert most == MOST_CLIENTS
        go_on.set()
        for client in clients:
            client.join(ENOUGH_S)
        assert most == 0


def test_a_socket_that_an_engine_left_is_replaced(folder: Path) -> None:
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / socket_name(0)))
    with pytest.raises(ControlError):
        ask(folder / socket_name(0), {}, timeout_s=ENOUGH_S)
    with _serving(folder) as path:
        assert ask(path, {"a": 1}, timeout_s=ENOUGH_S) == {"a": 1}


def test_a_folder_open_to_others_is_closed_to_them(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with _serving(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["file", "other file", "link", "long", "strangers"])
def test_a_place_that_will_not_do_is_one_line(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.mkdir()
    if what == "file":
        folder.touch()
    elif what == "other file":
        folder.mkdir()
        (folder / socket_name(0)).touch()
    elif what == "link":
        folder.symlink_to(folder.parent)
    elif what == "long":
        folder = folder / ("x" * 100)
    else:
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(SettingError, match=r"^kv_connector_extra_config\.control_path: [^\n]+$"):
        ControlServer(folder, socket_name(0), dict)
