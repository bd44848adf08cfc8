"""Runs a program and lets nothing of it outlive its owner.

`python -m kvtier_operator.runtime.process.guard GRACE_S PROGRAM ARGS...`

The owner holds the other end of this process's standard input. When the owner closes it, or dies in
whatever way, the guard stops the program (SIGTERM to its group, SIGKILL to everything below after GRACE_S
seconds), removes what it left in /dev/shm and the folder of its sockets, and exits with the program's exit
status. Being the subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), it also catches processes whose parents died,
such as vLLM's engine core. Should the guard itself be killed, the kernel kills the program
(PR_SET_PDEATHSIG).

Standard library only: it must start in milliseconds and never fail to import.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from kvtier_operator.runtime.process.shm import ShmLedger, descendants

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOUND = 127  # a shell's exit status for it (POSIX, 2.8.2)
_SOCKETS = "VLLM_RPC_BASE_PATH"  # of vLLM's processes, which leave them there (vllm/envs.py)
_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Run the program to its end and return its exit status, 128 + signal if one ended it."""
    grace_s, program = float(arguments[0]), arguments[1:]
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    for wanted in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    ledger = ShmLedger()
    with tempfile.TemporaryDirectory(prefix="kvtier-") as sockets:
        try:
            child = subprocess.Popen(  # noqa: S603 - the program is the caller's
                program,
                stdin=subprocess.DEVNULL,
                env={_SOCKETS: sockets} | os.environ,
                process_group=0,
                preexec_fn=_die_with_guard,  # noqa: PLW1509 - no threads here
            )
        except OSError as error:
            sys.stderr.write(f"cannot start {program[0]}: {error.strerror}\n")
            return _NOT_FOUND
        stop_at = _watch(child, wake_read, ledger, grace_s)
        _end(child, ledger, stop_at)
        ledger.remove()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _die_with_guard() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _watch(child: "subprocess.Popen[bytes]", wake: int, ledger: ShmLedger, grace_s: float) -> float:
    """Wait until the program ends or shall end; return the time (monotonic) until which it may take."""
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    poller.register(wake, select.POLLIN)
    if ledger.fileno() >= 0:
        poller.register(ledger.fileno(), select.POLLIN)
    while child.poll() is None:
        for descriptor, _ in poller.poll():
            if descriptor == ledger.fileno():
                ledger.record(descendants(os.getpid()))
            elif descriptor == wake:
                caught = os.read(wake, 64)
                if signal.SIGTERM in caught or signal.SIGINT in caught:
                    return time.monotonic() + grace_s
            elif not os.read(descriptor, 64):
                return time.monotonic() + grace_s
    return time.monotonic()


def _end(child: "subprocess.Popen[bytes]", ledger: ShmLedger, stop_at: float) -> None:
    """End every process below this one: politely until `stop_at`, then by SIGKILL until none is left."""
    ledger.record(descendants(os.getpid()))
    _signal(os.killpg, child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=max(0.0, stop_at - time.monotonic()))
    except subprocess.TimeoutExpired:
        ledger.record(descendants(os.getpid()))
    while below := descendants(os.getpid()):
        for pid in below:
            _signal(os.kill, pid, signal.SIGKILL)
        # One is awaited at a time, because what forked meanwhile must be killed before it is awaited.
        if child.returncode is None:
            child.wait()
        else:
            os.waitpid(-1, 0)
    child.wait()


def _signal(send: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    try:
        send(target, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
