"""One program of the control plane as a process of this test run."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

_START_TIMEOUT_S: Final = 240.0
_STOP_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.05
_LOG_LINES: Final = 15


class Process:
    """A running program with its log; `stop` ends it, and it does not outlive this process either way."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        # Where util-linux is, the kernel ends the program when a killed test run cannot.
        setpriv = shutil.which("setpriv")
        wrapper = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        with log.open("wb") as sink:
            self._popen = subprocess.Popen(  # noqa: S603 - our own command
                [*wrapper, *command], stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, env=env
            )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Waits for readiness; otherwise stops the program and fails with the end of its log."""
        try:
            self._poll(is_ready)
        except BaseException:
            self.stop()
            raise

    def _poll(self, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not is_ready():
            if self._ended_within(_POLL_S):
                if is_ready():
                    return  # what is waited for was its last deed
                raise RuntimeError(f"ended with {self._popen.returncode}; its log ends:\n{self._log_end()}")
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"not ready after {_START_TIMEOUT_S:.0f} s; its log ends:\n{self._log_end()}"
                )

    def _ended_within(self, timeout_s: float) -> bool:
        """Waits for the program's end; its readiness, unlike its end, has to be asked for."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait_until_log(self, text: str) -> None:
        """Waits until its log has this text."""
        self.wait_until(lambda: text in self.log.read_text(errors="replace"))

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._popen.send_signal(number)

    def wait(self) -> int:
        """Waits until it ends by itself, and returns its exit status."""
        return self._popen.wait(_STOP_TIMEOUT_S)

    def stop(self) -> None:
        """Ends the program and waits until it is gone."""
        self._popen.terminate()
        try:
            self._popen.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends the program without asking it."""
        self._popen.kill()
        self._popen.wait()

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
