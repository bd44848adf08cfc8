"""The control socket: who reaches it, and what it makes of what comes."""

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from kvtier_connector.core.control import client, socket_server
from kvtier_connector.core.control.client import ControlError, ask, socket_name, sockets_in
from kvtier_connector.core.control.socket_server import (
    MOST_CLIENTS,
    MOST_PREFETCHES,
    Answer,
    ControlServer,
    IsWanted,
)
from kvtier_connector.errors import SettingError

ENOUGH_S = 60.0


def echo(order: Mapping[str, Any], _is_wanted: IsWanted) -> Mapping[str, Any]:
    return order


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder whose path is short enough for a socket, and that is not there yet."""
    with TemporaryDirectory(prefix="kvtier-") as parent:
        yield Path(parent) / "run" / "control"


@contextmanager
def _serving(folder: Path, answer: Answer = echo, rank: int = 0) -> Generator[Path]:
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

    def slow(order: Mapping[str, Any], _is_wanted: IsWanted) -> Mapping[str, Any]:
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


def test_prefetches_leave_places_to_other_orders(folder: Path) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(order: Mapping[str, Any], _is_wanted: IsWanted) -> Mapping[str, Any]:
        if order["verb"] == "prefetch":
            begun.release()
            assert go_on.wait(ENOUGH_S)
        return order

    with _serving(folder, slow) as path, ExitStack() as stack:
        for _ in range(MOST_PREFETCHES):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(path))
            connection.sendall(b'{"verb": "prefetch"}\n')
        for _ in range(MOST_PREFETCHES):
            assert begun.acquire(timeout=ENOUGH_S)
        assert ask(path, {"verb": "prefetch"}, timeout_s=ENOUGH_S).keys() == {"error"}
        assert ask(path, {"verb": "clear"}, timeout_s=ENOUGH_S) == {"verb": "clear"}
        go_on.set()
        while "error" in ask(path, {"verb": "prefetch"}, timeout_s=ENOUGH_S):
            pass


def test_an_order_is_told_when_its_client_has_hung_up(folder: Path) -> None:
    begun, seen = threading.Event(), threading.Event()

    def until_unwanted(order: Mapping[str, Any], is_wanted: IsWanted) -> Mapping[str, Any]:
        assert is_wanted()
        begun.set()
        while is_wanted():
            pass
        seen.set()
        return order

    with _serving(folder, until_unwanted) as path:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"{}\n")
            assert begun.wait(ENOUGH_S)
            connection.shutdown(socket.SHUT_WR)  # which is no hanging up
            assert not seen.is_set()
        assert seen.wait(ENOUGH_S)


@pytest.fixture
def full(folder: Path) -> Generator[socket.socket]:
    """A socket with as many clients as may wait to be accepted."""
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(folder / socket_name(0)))
        listener.listen(0)
        waiting.connect(listener.getsockname())
        yield listener


def test_who_finds_no_place_to_wait_tries_again(full: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer() -> None:
        connection, _ = full.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(lines.readline())

    answering = threading.Thread(target=answer)

    def accept(_time_s: float) -> None:
        full.accept()[0].close()
        answering.start()

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=time.monotonic, sleep=accept))
    assert ask(Path(full.getsockname()), {"a": 1}, timeout_s=ENOUGH_S) == {"a": 1}
    answering.join(ENOUGH_S)


def test_after_its_time_it_does_not_try_again(full: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = count(step=10.0)
    timing = SimpleNamespace(monotonic=lambda: next(now_s), sleep=lambda _time_s: None)
    monkeypatch.setattr(client, "time", timing)
    with pytest.raises(ControlError, match="temporarily unavailable"):
        ask(Path(full.getsockname()), {"a": 1}, timeout_s=ENOUGH_S)


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
        ControlServer(folder, socket_name(0), echo)
