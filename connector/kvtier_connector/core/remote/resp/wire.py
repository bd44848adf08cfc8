"""Bytes to and from a server, straight between a socket and memory, each call within its deadline.

Sockets block in the kernel, which keeps the time (SO_RCVTIMEO, SO_SNDTIMEO of socket(7)): a value is one
call, where a socket with Python's own time-out is asked to poll(2) before each of many. What has returned
writes to no memory later.

At its deadline a call takes what has come and does not wait: a thread that got no core, or no interpreter, in
time says nothing of the server.
"""

import os
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from math import ceil, inf
from typing import Final, Protocol, TypeVar

Received = TypeVar("Received", bytes, int)
_IOV_MAX: Final = os.sysconf("SC_IOV_MAX")
_TIMEVAL: Final = struct.Struct("@ll")
_US: Final = 1_000_000
_SHARE: Final = 0.9
_OVER: Final = "its time is over"
_WOULD_WAIT: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)  # of a call that may not


class Wire(Protocol):
    """A connected socket. Raises TimeoutError at a deadline, in seconds of the monotonic clock; OSError."""

    def read(self, most_bytes: int, deadline_s: float) -> bytes:
        """Return what has come, at least one byte."""

    def fill(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Read as many bytes as the memory has."""

    def write(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Send all of it."""

    def close(self) -> None:
        """Close the socket."""


class PlainWire:
    """A Wire without encryption."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(None)
        self._socket = connected
        self._limits_s = {socket.SO_RCVTIMEO: inf, socket.SO_SNDTIMEO: inf}  # as the kernel has them

    def read(self, most_bytes: int, deadline_s: float) -> bytes:
        """Return what has come."""
        while True:
            flags = self._limit(socket.SO_RCVTIMEO, deadline_s)
            try:
                return _some(self._socket.recv(most_bytes, flags))
            except BlockingIOError as error:  # the kernel's time-out
                _check_left(flags, error)

    def fill(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Read as many bytes as the memory has."""
        # Few steps: behind a value's copy nothing of the interpreter is left in the CPU's caches.
        rest = after(memory, 0) if memory and not memory[0].nbytes else memory
        while rest:
            flags = self._limit(socket.SO_RCVTIMEO, deadline_s)
            try:
                size = self._socket.recvmsg_into(rest[:_IOV_MAX], 0, socket.MSG_WAITALL | flags)[0]
            except BlockingIOError as error:
                _check_left(flags, error)
            else:
                rest = after(rest, _some(size))

    def write(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Send all of it."""
        rest = memory
        while rest:
            flags = self._limit(socket.SO_SNDTIMEO, deadline_s)
            try:
                rest = after(rest, self._socket.sendmsg(rest[:_IOV_MAX], (), flags))
            except BlockingIOError as error:
                _check_left(flags, error)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _limit(self, option: int, deadline_s: float) -> int:
        """Have the kernel wait for no more than is left: a peer that drips does not prolong it.

        Somewhat less will do, for the waiting begins anew until nothing is left: so there is one call to set
        it for many that wait. Returns the flags of the call: where nothing is left, it is not to wait.
        """
        left = deadline_s - time.monotonic()
        if left <= 0:
            return socket.MSG_DONTWAIT
        if not left / 2 <= self._limits_s[option] <= left:
            self._limits_s[option] = limit_s = left * _SHARE
            seconds, us = divmod(ceil(limit_s * _US), _US)
            self._socket.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(seconds, us))
        return 0


class TlsWire:
    """A Wire with TLS. Python's ssl goes on waiting after the kernel's time-outs, so these are its own."""

    def __init__(self, connected: ssl.SSLSocket) -> None:
        self._socket = connected

    def read(self, most_bytes: int, deadline_s: float) -> bytes:
        """Return what has come."""
        self._limit(deadline_s)
        try:
            return _some(self._socket.recv(most_bytes))
        except _WOULD_WAIT as error:
            raise TimeoutError(_OVER) from error

    def fill(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Read as many bytes as the memory has: at most 16 KiB a call, a record of TLS."""
        rest = after(memory, 0)
        try:
            while rest:
                self._limit(deadline_s)
                rest = after(rest, _some(self._socket.recv_into(rest[0])))
        except _WOULD_WAIT as error:
            raise TimeoutError(_OVER) from error

    def write(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Send all of it."""
        rest = after(memory, 0)
        try:
            while rest:
                self._limit(deadline_s)
                rest = after(rest, self._socket.send(rest[0]))
        except _WOULD_WAIT as error:
            raise TimeoutError(_OVER) from error

    def close(self) -> None:
        """Close the socket; a farewell might wait."""
        self._socket.close()

    def _limit(self, deadline_s: float) -> None:
        self._socket.settimeout(max(0.0, deadline_s - time.monotonic()))


def left_s(deadline_s: float) -> float:
    """Return the seconds until a deadline. Raises TimeoutError: there are none."""
    left = deadline_s - time.monotonic()
    if left <= 0:
        raise TimeoutError(_OVER)
    return left


def _check_left(flags: int, error: BlockingIOError) -> None:
    if flags:
        raise TimeoutError(_OVER) from error


def after(memory: Sequence[memoryview], size_bytes: int) -> list[memoryview]:
    """Return what lies behind the first bytes of pieces of memory; its first piece is not empty."""
    for number, piece in enumerate(memory):
        if size_bytes < piece.nbytes:
            return [piece[size_bytes:], *memory[number + 1 :]]
        size_bytes -= piece.nbytes
    return []


def _some(received: Received) -> Received:
    if not received:
        raise ConnectionResetError("the server closed the connection")
    return received
