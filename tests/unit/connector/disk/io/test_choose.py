"""The engine is the best that the kernel allows, and what is said of it names every reason."""

import ctypes
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier_connector.core.disk.io import uring
from kvtier_connector.core.disk.io.choose import ENGINES, depth_for, open_engine
from kvtier_connector.core.disk.io.engine import BlockIO, EngineUnavailableError, IOEngine
from kvtier_connector.core.disk.io.threads import ThreadEngine
from kvtier_connector.core.disk.io.uring import UringEngine

IO_URING_SETUP, IO_URING_ENTER = 425, 426
"""Of every architecture (asm-generic/unistd.h)."""

FILTERED = """
import ctypes, struct, sys
from kvtier_connector.core.disk.io.choose import open_engine
call, number = int(sys.argv[1]), int(sys.argv[2])
code = b"".join(struct.pack("HBBI", *step) for step in (
    (0x20, 0, 0, 0),                   # load the system call's number
    (0x15, 0, 1, call),                # is it this one?
    (0x06, 0, 0, 0x00050000 | number), # then it fails so
    (0x06, 0, 0, 0x7FFF0000),          # otherwise it is allowed
))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer := ctypes.create_string_buffer(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP
engine, report = open_engine(3)
print(report)
engine.close()
"""

NO_DESCRIPTORS = """
import os, resource
from kvtier_connector.core.disk.io import uring
from kvtier_connector.core.disk.io.choose import open_engine
uring._library()
used = os.open("/dev/null", os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (used + {left} + 1,) * 2)
engine, report = open_engine(3)
print(report)
engine.close()
os.close(used)
assert [os.dup(0) for _ in range({left} + 1)][-1] == used + {left}, "a descriptor was left open"
"""


def said_by(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.fixture
def opened() -> Iterator[UringEngine]:
    try:
        engine = UringEngine(2)
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    with closing(engine):
        yield engine


@pytest.mark.usefixtures("opened")
def test_the_ring_is_taken_where_it_is_allowed() -> None:
    engine, report = open_engine(5)
    with closing(engine):
        assert isinstance(engine, UringEngine)
        assert str(report) == "io_uring, 5 transfers at a time"


def test_what_is_preferred_is_tried_first() -> None:
    engine, report = open_engine(2, prefer="threads")
    with closing(engine):
        assert isinstance(engine, ThreadEngine)
        assert (engine.depth, str(report)) == (2, "threads, 2 transfers at a time")


@pytest.mark.parametrize(
    ("block_bytes", "depth"), [(4 << 10, 128), (512 << 10, 128), (1 << 20, 64), (2 << 20, 32), (64 << 20, 32)]
)
def test_small_blocks_go_many_at_a_time(block_bytes: int, depth: int) -> None:
    assert depth_for(block_bytes) == depth


def test_threads_are_few_however_many_transfers_are_asked_for() -> None:
    engine, report = open_engine(128, prefer="threads")
    with closing(engine):
        assert (engine.depth, str(report)) == (32, "threads, 32 transfers at a time")


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no engine is called 'aio'; there are io_uring, threads"):
        open_engine(2, prefer="aio")


@pytest.mark.parametrize(
    ("call", "number", "why"),
    [
        (IO_URING_SETUP, errno.EPERM, "forbidden by kernel.io_uring_disabled or by a seccomp filter"),
        (IO_URING_SETUP, errno.ENOSYS, "this kernel has none, or a seccomp filter hides it"),
        (IO_URING_SETUP, errno.ENOMEM, "not enough lockable memory (RLIMIT_MEMLOCK)"),
        (IO_URING_SETUP, errno.EINVAL, "this kernel is older than 5.18"),
        (IO_URING_SETUP, errno.EIO, "no ring can be made"),
    ],
)
def test_a_kernel_that_refuses_a_ring_gets_threads(call: int, number: int, why: str) -> None:
    said = said_by(FILTERED, call, number)
    assert said == f"threads, 3 transfers at a time (io_uring: {why} ({os.strerror(number)}))"


@pytest.mark.usefixtures("opened")
def test_a_ring_that_may_not_be_entered_gets_threads() -> None:
    said = said_by(FILTERED, IO_URING_ENTER, errno.EPERM)
    assert (
        said == "threads, 3 transfers at a time (io_uring: [Errno 1] io_uring_enter: Operation not permitted)"
    )


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize(
    ("left", "why"),
    [(0, "no ring can be made (Too many open files)"), (1, "[Errno 24] Too many open files")],
    ids=["no ring", "no eventfd"],
)
def test_a_process_that_may_open_no_more_files_gets_threads(left: int, why: str) -> None:
    said = said_by(NO_DESCRIPTORS.format(left=left))
    assert said == f"threads, 3 transfers at a time (io_uring: {why})"


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/dev/shm", "io_uring, 2 transfers at a time"),  # noqa: S108 - only asked for its kind
        (
            "/proc",
            (
                "threads, 2 transfers at a time (io_uring: its submissions may wait for this file system, "
                "kind 0x9fa0, which is not one of ext4, XFS, Btrfs, F2FS, tmpfs)"
            ),
        ),
    ],
)
def test_where_a_submission_could_hang_there_are_threads(folder: str, said: str) -> None:
    engine, report = open_engine(2, folder=Path(folder))
    engine.close()
    assert str(report) == said


def test_a_folder_that_is_gone_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        open_engine(2, folder=Path("/nowhere"))


@pytest.fixture
def no_library() -> Iterator[None]:
    uring._library.cache_clear()
    yield
    uring._library.cache_clear()


@pytest.mark.usefixtures("no_library")
def test_a_package_that_is_not_installed_gets_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "liburing.liburing", None)
    engine, report = open_engine(1)
    engine.close()
    assert str(report).startswith("threads, 1 transfers at a time (io_uring: the liburing package: ")


@pytest.mark.usefixtures("no_library")
def test_a_package_that_hides_its_functions_gets_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "liburing.liburing", ctypes)
    monkeypatch.setattr(ctypes, "__file__", None)
    engine, report = open_engine(1)
    engine.close()
    assert "undefined symbol: io_uring_queue_init" in str(report)


def test_where_there_is_nothing_every_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(depth: int) -> IOEngine:
        raise EngineUnavailableError(f"not {depth}")

    for name in ENGINES:
        monkeypatch.setitem(ENGINES, name, refuse)
    with pytest.raises(
        EngineUnavailableError, match="no way to reach the disk: io_uring: not 3; threads: not 3"
    ):
        open_engine(3)


def test_threads_that_cannot_be_had_are_refused_and_none_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before, start = set(threading.enumerate()), threading.Thread.start

    def refuse_the_third(thread: threading.Thread) -> None:
        if len(set(threading.enumerate()) - before) == 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_third)
    with pytest.raises(EngineUnavailableError, match="2 of 4 threads: can't start new thread"):
        ThreadEngine(4)
    assert set(threading.enumerate()) == before


def written(engine: IOEngine, blocks: int) -> set[OSError | None]:
    descriptor = os.memfd_create("file")
    engine.submit(
        [
            BlockIO(tag, write=True, descriptor=descriptor, offset=0, memory=(memoryview(b"x"),))
            for tag in range(blocks)
        ]
    )
    errors = []
    while engine.in_flight:
        errors += [ended.error for ended in engine.take_completions(60.0)]
    os.close(descriptor)
    assert len(errors) == blocks
    return set(errors)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EBUSY, errno.EINTR])
def test_a_kernel_that_has_no_room_now_is_asked_again(opened: UringEngine, number: int) -> None:
    kernel = opened._open_ring()
    real = kernel._call
    refusals = list[int]()

    def submit_and_wait(*arguments: object) -> int:
        if len(refusals) < 3:
            refusals.append(number)
            return -number
        return int(real.submit_and_wait_timeout(*arguments))

    changed = {"submit": lambda _: -number, "submit_and_wait_timeout": submit_and_wait}
    kernel._call = SimpleNamespace(**vars(real) | changed)
    assert written(opened, 6) == {None}
    assert len(refusals) == 3


def test_a_kernel_that_takes_nothing_any_more_is_an_error(opened: UringEngine) -> None:
    kernel = opened._open_ring()
    kernel._call = SimpleNamespace(**vars(kernel._call) | {"submit": lambda _: -errno.EBADF})
    with pytest.raises(OSError, match="io_uring_enter: Bad file descriptor"):
        written(opened, 1)
