"""The files of a store start a real server, that holds what is planned and answers to its password alone."""

import contextlib
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.control_plane.certificates import Authority
from tests.shared.stores import NEEDS_REDIS, redis_server, valkey_server
from tests.shared.waiting import eventually

from kvtier_connector.core.remote.resp.connect import Access, connect
from kvtier_connector.core.remote.resp.url import parse_url
from kvtier_connector.errors import RemoteError
from kvtier_operator.planning.store.server_files import (
    CONFIG_FILE,
    PING_FILE,
    START_FILE,
    Folders,
    server_files,
)
from kvtier_operator.planning.store.store_plan import store_size
from kvtier_operator.planning.units import GIB

_SIZE: Final = store_size(GIB, all_connections=8)
_PASSWORD: Final = """ it's "odd" $HOME \\ %s #1"""  # noqa: S105 - of a server that ends with the test
_ANOTHER: Final = "another-one"
_ANSWER_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Pod:
    """Folders of a store's pod, and the server in it."""

    path: Path
    port: int

    @property
    def folders(self) -> Folders:
        """Where its files are."""
        config, credentials, tls, run = (
            str(self.path / name) for name in ("config", "credentials", "tls", "run")
        )
        return Folders(config, credentials, tls, run, self.port)

    def script(self, name: str) -> list[str]:
        """What the pod runs."""
        return ["sh", str(self.path / "config" / name)]

    @property
    def environment(self) -> dict[str, str]:
        """The programs of the image."""
        return {"PATH": f"{self.path / 'bin'}:/usr/bin:/bin"}

    def write_secret(self, **values: str) -> None:
        """Somebody changes the Secret."""
        for key, value in values.items():
            (self.path / "credentials" / key).write_text(value)

    def add_client(self) -> None:
        """The image's client, for which Debian's stands in: it has the same arguments."""
        redis_server()  # brings it
        (self.path / "bin" / "valkey-cli").symlink_to(shutil.which("redis-cli") or "")

    def pings(self) -> bool:
        """Whether a probe succeeds."""
        return not self.run(PING_FILE).returncode

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """One of its scripts, to its end."""
        command = self.script(name)
        return subprocess.run(  # noqa: S603 - our own script
            command, env=self.environment, capture_output=True, text=True, check=False
        )

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """Its server's process, from when it listens until it has ended."""
        process = subprocess.Popen(  # noqa: S603 - our own script
            self.script(START_FILE), env=self.environment, stdout=subprocess.DEVNULL, cwd=self.path
        )
        try:
            eventually(lambda: process.poll() is not None or _listens(self.port), "server that listens")
            assert process.poll() is None, "it did not start"
            yield process.pid
        finally:
            process.terminate()
            process.wait()

    def ask(self, *words: str, password: str = "", user: str = "") -> str:
        """A client's command and the server's answer, an error as its text."""
        signs_in = ["AUTH", *([user] if user else []), password]
        with socket.create_connection(("127.0.0.1", self.port), timeout=_ANSWER_S) as connection:
            if password:
                answer = _exchange(connection, signs_in)
                if answer != "+OK":
                    return answer
            return _exchange(connection, words)


def _exchange(connection: socket.socket, words: tuple[str, ...] | list[str]) -> str:
    parts = (f"${len(word.encode())}\r\n{word}\r\n" for word in words)
    connection.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
    return connection.recv(1 << 20).decode().removesuffix("\r\n")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    with socket.create_server(("127.0.0.1", 0)) as free:
        pod = Pod(tmp_path, free.getsockname()[1])
    for name in ("bin", "config", "credentials", "tls", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "valkey-server").symlink_to(valkey_server())
    for name, text in server_files(_SIZE, pod.folders, encrypted=False).items():
        (tmp_path / "config" / name).write_text(text)
    pod.write_secret(password=_PASSWORD)
    return pod


def test_it_holds_what_was_planned_and_answers_to_its_password_alone(pod: Pod) -> None:
    with pod.serving() as pid:
        assert pod.ask("GET", "key").startswith("-NOAUTH")
        assert pod.ask("GET", "key", password=_ANOTHER).startswith("-WRONGPASS")
        assert pod.ask("SET", "key", "value", password=_PASSWORD) == "+OK"
        memory = pod.ask("INFO", "memory", password=_PASSWORD)
        assert f"maxmemory:{_SIZE.held_bytes}\r\n" in memory
        assert "maxmemory_policy:allkeys-lru\r\n" in memory
        for process in (str(pid), "self"):
            argument = Path(f"/proc/{process}/cmdline").read_bytes()
            variables = Path(f"/proc/{process}/environ").read_bytes()
            assert _PASSWORD.encode() not in argument + variables
    assert not [path for path in pod.path.rglob("*") if path.suffix in {".rdb", ".aof"}]


@pytest.mark.parametrize(
    "words",
    [
        ("FLUSHALL",),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("RANDOMKEY",),
        ("RENAME", "key", "other"),
        ("CONFIG", "GET", "*"),
        ("EVAL", "return 1", "0"),
        ("SHUTDOWN",),
        ("ACL", "LIST"),
        ("PUBLISH", "channel", "message"),
        ("REPLICAOF", "elsewhere", "6379"),
    ],
    ids="-".join,
)
def test_its_user_can_do_nothing_else(pod: Pod, words: tuple[str, ...]) -> None:
    with pod.serving():
        assert pod.ask(*words, password=_PASSWORD).startswith("-NOPERM")


@pytest.mark.parametrize(
    "words",
    [
        ("STRLEN", "kvtier:a"),
        ("SET", "kvtier:a", "value", "EX", "10"),
        ("EXISTS", "key"),
        ("TOUCH", "key"),
        ("DEL", "key"),
        ("PING",),
        ("HELLO", "3"),
        ("CLIENT", "SETINFO", "LIB-NAME", "kvtier"),
        ("ACL", "DRYRUN", "default", "GET", "key"),
    ],
    ids="-".join,
)
def test_its_user_can_do_what_engines_do(pod: Pod, words: tuple[str, ...]) -> None:
    with pod.serving():
        answer = pod.ask(*words, password=_PASSWORD)
        # Redis before 7.2 knows no SETINFO
        assert not answer.startswith("-") or answer.startswith("-ERR unknown subcommand 'SETINFO'"), answer


@NEEDS_REDIS
def test_its_probes_fail_until_it_has_the_password_that_the_secret_has(pod: Pod) -> None:
    pod.add_client()
    with pod.serving():
        assert pod.pings()
        pod.write_secret(password=f"{_ANOTHER}\n")
        assert not pod.pings()
    with pod.serving():
        assert pod.pings()
        assert pod.ask("PING", password=_PASSWORD).startswith("-WRONGPASS")
        assert pod.ask("PING", password=_ANOTHER) == "+PONG"


@NEEDS_REDIS
def test_with_a_certificate_it_speaks_tls_alone(pod: Pod) -> None:
    """By Debian's Redis: PyPI's Valkey is built without TLS."""
    pod.add_client()
    (pod.path / "bin" / "valkey-server").unlink()
    (pod.path / "bin" / "valkey-server").symlink_to(redis_server())
    files = server_files(_SIZE, pod.folders, encrypted=True)
    # Redis reads no certificate again by itself
    config, reloads = re.subn("tls-auto-reload-interval .*\n", "", files[CONFIG_FILE])
    assert reloads == 1
    for name, text in {**files, CONFIG_FILE: config}.items():
        (pod.path / "config" / name).write_text(text)
    authority = Authority(pod.path)
    pair = authority.sign("store", addresses=["127.0.0.1"])
    pair.certificate.rename(pod.path / "tls" / "tls.crt")
    pair.key.rename(pod.path / "tls" / "tls.key")
    url = parse_url(f"rediss://127.0.0.1:{pod.port}")
    access = Access(url, str(pod.path / "credentials"), str(authority.file), _ANSWER_S)
    with pod.serving():
        assert pod.pings()
        with closing(connect(access)) as connection:
            assert connection.facts(_ANSWER_S).maxmemory_bytes == _SIZE.held_bytes
        with pytest.raises(RemoteError):
            connect(replace(access, url=replace(url, tls=False)))


def test_a_user_of_one_s_own_is_the_only_one(pod: Pod) -> None:
    pod.write_secret(username="engines", password=_ANOTHER)
    with pod.serving():
        assert pod.ask("PING", password=_ANOTHER, user="engines") == "+PONG"
        assert pod.ask("PING", password=_ANOTHER).startswith("-WRONGPASS")
        assert pod.ask("PING").startswith("-NOAUTH")


def test_files_that_windows_wrote_are_read_as_engines_read_them(pod: Pod) -> None:
    pod.write_secret(username="engines\r\n", password=f"{_ANOTHER}\r\n")
    with pod.serving():
        assert pod.ask("PING", password=_ANOTHER, user="engines") == "+PONG"
    pod.write_secret(username="\n")
    with pod.serving():
        assert pod.ask("PING", password=_ANOTHER) == "+PONG"


@pytest.mark.parametrize("name", ["bob nopass ~* +@all on", "a\nuser eve on nopass ~* +@all"])
def test_a_name_brings_no_rights(pod: Pod, name: str) -> None:
    pod.write_secret(username=name)
    ran = pod.run(START_FILE)
    assert ran.returncode
    assert "username: a name has letters" in ran.stderr


def test_without_a_password_nothing_starts(pod: Pod) -> None:
    pod.write_secret(password="")
    ran = pod.run(START_FILE)
    assert ran.returncode
    assert "is empty: the Secret needs a password" in ran.stderr
