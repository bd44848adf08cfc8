"""Binds the calls of one connection to an asyncio transport."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, cast

from kvtier_scorer.picker.http2.connection import Connection
from kvtier_scorer.picker.http2.events import DataReceived, Event, StreamAborted, StreamOpened
from kvtier_scorer.picker.http2.headers import Headers
from kvtier_scorer.picker.rpc.call import Call, Method, Methods
from kvtier_scorer.picker.rpc.framing import MessageReader, MessageTooLargeError, framed
from kvtier_scorer.picker.rpc.status import HEADERS_BLOCK, CallError, Status, trailers_block

_LOG: Final = logging.getLogger(__name__)


class _OpenCall:
    """A stream with the call on it; the call's Reply."""

    __slots__ = ("_begun", "_connection", "_finished", "call", "method", "reader", "stream_id")

    def __init__(self, connection: "RpcConnection", stream_id: int, method: Method) -> None:
        self._connection = connection
        self._begun = False
        self._finished = False
        self.stream_id = stream_id
        self.method = method
        self.reader = MessageReader(method.max_message_bytes)
        self.call: Call = method.open(self)

    def send(self, messages: Iterable[bytes]) -> None:
        if self._finished:
            return
        http2 = self._connection.http2
        if not self._begun:
            self._begun = True
            http2.send_headers(self.stream_id, HEADERS_BLOCK)
        http2.send_data(self.stream_id, b"".join(map(framed, messages)))
        self._connection.flush_soon()

    def finish(self, status: Status = Status.OK, message: str = "") -> None:
        if self._finished:
            return
        self._finished = True
        block = trailers_block(status, message, only=not self._begun)
        self._connection.http2.send_trailers(self.stream_id, block)
        self._connection.flush_soon()
        self._connection.forget(self)

    def drop(self) -> None:
        """The stream is gone."""
        self._finished = True
        self._connection.forget(self)


class RpcConnection(asyncio.Protocol):
    """One client.

    Args:
        methods: What it may call.
        ended: Told when the connection is gone.
    """

    def __init__(self, methods: Methods, ended: Callable[["RpcConnection"], None]) -> None:
        self.http2 = Connection()
        self._methods = methods
        self._ended = ended
        self._calls: dict[int, _OpenCall] = {}
        self._transport: asyncio.Transport | None = None
        self._reading = False
        self._flush_planned = False

    @property
    def calls(self) -> int:
        """Calls that are open."""
        return len(self._calls)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio: a client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio: it has gone."""
        del exc
        self._transport = None
        for open_call in tuple(self._calls.values()):
            open_call.drop()
        self._ended(self)

    def pause_writing(self) -> None:
        """Asyncio: the client does not read. What it asks for meanwhile would only pile up here."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Asyncio: it reads again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Asyncio: the client sent something."""
        self._reading = True
        try:
            for event in self.http2.receive(data):
                self._on_event(event)
        finally:
            self._reading = False
        self._flush()

    def flush_soon(self) -> None:
        """Write what has been sent: at the end of what is read now, or on the loop's next round."""
        if not self._reading and not self._flush_planned:
            self._flush_planned = True
            asyncio.get_running_loop().call_soon(self._flush)

    def forget(self, open_call: _OpenCall) -> None:
        """A call is over."""
        if self._calls.pop(open_call.stream_id, None) is not None:
            try:
                open_call.call.gone()
            except Exception:  # noqa: BLE001 - a fault of one call must not end the others
                _LOG.exception("a call did not end cleanly")

    def announce_drain(self) -> None:
        """Ask the client to connect anew, and end the calls that last until the client ends them."""
        self.http2.announce_drain()
        for open_call in tuple(self._calls.values()):
            if open_call.method.lasting:
                open_call.finish(Status.UNAVAILABLE, "the picker is stopping")
        self._flush()

    def drain(self) -> None:
        """Take no more calls, and close after the last one."""
        self.http2.drain()
        self._flush()

    def close(self) -> None:
        """Give up what is still open."""
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        self._flush_planned = False
        output = self.http2.take_output()
        if self._transport is None or self._transport.is_closing():
            return
        if output:
            self._transport.write(output)
        if self.http2.closed:
            self._transport.close()

    def _on_event(self, event: Event) -> None:
        if type(event) is DataReceived:
            open_call = self._calls.get(event.stream_id)
            if open_call is not None:
                self._guarded(open_call, event.data, event.ended)
        elif type(event) is StreamOpened:
            self._open(event)
        elif type(event) is StreamAborted:
            open_call = self._calls.get(event.stream_id)
            if open_call is not None:
                open_call.drop()

    def _open(self, event: StreamOpened) -> None:
        method = self._methods.get(_path(event.headers))
        if method is None:
            block = trailers_block(Status.UNIMPLEMENTED, "no such method", only=True)
            self.http2.send_trailers(event.stream_id, block)
            return
        open_call = _OpenCall(self, event.stream_id, method)
        self._calls[event.stream_id] = open_call
        if event.ended:
            self._guarded(open_call, b"", ended=True)

    def _guarded(self, open_call: _OpenCall, data: bytes, ended: bool) -> None:
        """Feed a call; whatever goes wrong in it ends this call alone."""
        try:
            self._feed(open_call, data, ended)
        except CallError as error:
            open_call.finish(error.status, str(error))
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("a call failed")
            open_call.finish(Status.INTERNAL, "internal error of the picker; its log says more")

    @staticmethod
    def _feed(open_call: _OpenCall, data: bytes, ended: bool) -> None:
        call = open_call.call
        try:
            messages = open_call.reader.feed(data)
        except MessageTooLargeError:
            if not call.oversized(open_call.method.max_message_bytes):
                raise
            return
        for message in messages:
            call.message(message)
        if ended:
            if not open_call.reader.empty:
                raise CallError(Status.INVALID_ARGUMENT, "the last message is cut off")
            call.half_closed()


def _path(headers: Headers) -> bytes:
    """Path of a gRPC request; empty for anything else."""
    fields = dict(headers)
    if fields.get(b":method") != b"POST" or not fields.get(b"content-type", b"").startswith(
        b"application/grpc"
    ):
        return b""
    return fields.get(b":path", b"")
