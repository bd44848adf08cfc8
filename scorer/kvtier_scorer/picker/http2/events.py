"""What a connection tells of its streams."""

from typing import NamedTuple

from kvtier_scorer.picker.http2.headers import Headers


class StreamOpened(NamedTuple):
    """A request began.

    Attributes:
        stream_id: Its stream.
        headers: Its headers.
        ended: Nothing follows.
    """

    stream_id: int
    headers: Headers
    ended: bool


class DataReceived(NamedTuple):
    """More of a request; `ended` says that nothing follows. Trailers come as this, without data."""

    stream_id: int
    data: bytes
    ended: bool


class StreamAborted(NamedTuple):
    """The peer has no interest in the stream any more; nothing can be sent on it."""

    stream_id: int


Event = StreamOpened | DataReceived | StreamAborted
