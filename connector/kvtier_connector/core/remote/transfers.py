"""The threads that move blocks between memory and a store, so that nobody else ever waits for a network.

Each has a connection of its own. What fails takes the store out of use for a while: everything that waits
ends at once, and one thread tries again.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from kvtier_common.backoff import Backoff
from kvtier_connector.config import REMOTE_DEPTH, REMOTE_VALUE_BYTES
from kvtier_connector.core.behind import messages
from kvtier_connector.core.behind.event_queue import EventQueue
from kvtier_connector.core.behind.messages import Down, Ended, KeepRates, Order, Probe, Probed
from kvtier_connector.core.remote.seals import SEAL_BYTES
from kvtier_connector.core.remote.store import ServerFacts, StoreConnection, Value
from kvtier_connector.core.remote.values import BlockLayout
from kvtier_connector.errors import (
    ConnectorError,
    CorruptBlockError,
    RemoteError,
    RemoteFullError,
    RemoteMovedError,
    VanishedBlockError,
)

_WRITES_ASKED: Final = 16  # blocks of which is asked at a time whether they are there already
_PROBE_BYTES: Final = 16 << 20  # read to learn how fast a store is, all threads together
_PROBE_TAKES_S: Final = 1.0  # after which a slow store has shown that it is slow
_RATES_BYTES: Final = 4096  # more than what engines keep of their pace has ever
NEWEST_KEYS: Final = 1 << 16
"""Of the list of blocks that engines used last: 2.4 MB."""
_NEWEST_BYTES: Final = REMOTE_VALUE_BYTES  # more than that list ever has
_PROBE_LASTS_S: Final = 3600  # the value that is read then
_FORGOTTEN_AT_ONCE: Final = 256  # blocks that are removed by one command
_MOST_EPOCH_BYTES: Final = 64
_NOT_CONNECTED: Final = "it is not connected yet"
_SHORTEST_S: Final = 0.25
_PATIENCE: Final = 3.0
"""A value may take so many times as long as those before it, and at least the shortest time."""
_FADING: Final = 0.2  # share of the latest in the time that a value is taken to need


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTimings:
    """Delays in seconds. Tests pass shorter ones."""

    # how long a store is left alone that failed
    retry: Backoff = field(default_factory=lambda: Backoff(1.0, 60.0))
    full_s: float = 60.0  # how long nothing is written to a store that took no more
    moved_s: float = 60.0  # how long one is left alone whose keys are another server's, whoever is asked
    relearn_s: float = 30.0  # how often a store is looked at that nothing is read from
    closing_s: float = 2.0  # how long the end may take


DEFAULT_TIMINGS: Final = RemoteTimings()


@dataclass(frozen=True, slots=True)
class Answered:
    """Blocks that were asked for, with whether they are there."""

    keys: Sequence[bytes]
    present: Sequence[bool]
    generation: int = 0  # of the blocks


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Blocks that were to be forgotten are; or the store could not be told, for the reason that is there."""

    keys: Sequence[bytes]
    error: str = ""


@dataclass(frozen=True, slots=True)
class EpochKept:
    """The store knows the share's epoch; or could not be told, and will be once it can be used again."""

    epoch: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Up:
    """The store can be used, or used again."""

    facts: ServerFacts
    rates: str  # what another engine has kept there of its pace; empty for nothing
    newest: Sequence[bytes] = ()  # blocks that another engine used last, if that was asked for


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store says of itself."""

    facts: ServerFacts


@dataclass(frozen=True, slots=True)
class Full:
    """The store took no more, and is given nothing for a while. The reason is for people."""

    reason: str


Event = messages.Event | Answered | Up | Facts | Full | Forgotten | EpochKept


@dataclass(frozen=True, slots=True)
class _Ask:
    keys: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class _Forget:
    keys: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class _KeepEpoch:
    epoch: str


@dataclass(frozen=True, slots=True)
class _KeepNewest:
    keys: Sequence[bytes]


class _Reconnect:
    """Try whether the store can be used."""


class _Connect:
    """Have a connection before there is something to do, which nothing then waits for."""


_Work = (
    _Ask
    | Order
    | list[Order]
    | Probe
    | KeepRates
    | _KeepNewest
    | _Forget
    | _KeepEpoch
    | _Reconnect
    | _Connect
)


class _Queue:
    """What waits for a thread: what is to be forgotten, then questions, then reads, then writes."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.epochs = deque[_KeepEpoch](maxlen=1)
        self.forgets = deque[_Forget]()
        self.asks = deque[_Ask]()
        self.reads = deque[Order]()
        self.probes = deque[Probe]()
        self.rates = deque[KeepRates](maxlen=1)
        self.newest = deque[_KeepNewest](maxlen=1)
        self.writes = deque[Order]()
        self.is_closing = False
        self.down_until_s: float | None = 0.0  # None while the store serves; it is not known to at first
        self.is_trying = False
        self.downs = 0
        """How often the store has gone out of use; connections from before that are done with."""

    def take(self, connected_at: int) -> _Work | None:
        """Wait for something to do; None at the end. The number is of `downs`, -1 for no connection."""
        with self.changed:
            while not self.is_closing:
                if self.down_until_s is None:
                    work = self._next(connected_at)
                    left_s = None
                else:
                    left_s = self.down_until_s - time.monotonic()
                    work = _Reconnect() if left_s <= 0 and not self.is_trying else None
                    self.is_trying = self.is_trying or work is not None
                if work is not None:
                    return work
                self.changed.wait(None if self.is_trying else left_s)
            # the next engine's start is worth a moment of this one's end
            can_keep = self.newest and self.down_until_s is None and connected_at == self.downs
            return self.newest.popleft() if can_keep else None

    def _next(self, connected_at: int) -> _Work | None:
        if connected_at != self.downs:
            return _Connect()
        queues = (self.epochs, self.forgets, self.asks, self.reads, self.probes, self.rates, self.newest)
        for waiting in queues:
            if waiting:
                return waiting.popleft()
        return [self.writes.popleft() for _ in range(min(_WRITES_ASKED, len(self.writes)))] or None

    def take_read(self, generation: int) -> Order | None:
        """Take a read of this generation that waits, if one is next."""
        with self.changed:
            is_next = self.reads and not self.is_closing and self.reads[0].generation == generation
            return self.reads.popleft() if is_next else None


@dataclass(frozen=True, slots=True)
class _Now:
    """What blocks are of now, and where those lie. An order of another generation is not done."""

    generation: int
    layout: BlockLayout


class RemoteThreads:
    """Serve orders, beginning now."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        connect: Callable[[], StoreConnection],
        layout: BlockLayout,
        *,
        connections: int,
        ttl_s: int,
        connect_timeout_s: float,
        reads_newest: bool = False,  # tell, when the store is first there, what other engines used last
        news: threading.Event | None = None,
        timings: RemoteTimings = DEFAULT_TIMINGS,
    ) -> None:
        self.outbox = EventQueue[Event](news)
        self._connect = connect
        self._now = _Now(0, layout)
        self._unkept_epoch = ""  # what the store has to be told before it is used again
        self._ttl_s = ttl_s
        self._timings = timings
        self._reads_newest = reads_newest
        self._queue = _Queue()
        self._probes = _Probes()
        self._connect_timeout_s = connect_timeout_s
        self._value_s = connect_timeout_s / _PATIENCE  # until it is known better
        self._failures = 0
        self._reason = ""  # why the store is not used, as it was told last
        self._moves = Counter[type]()  # of work, how often in a row a server said that it is another's
        self._full_until_s = 0.0
        self._threads = [
            threading.Thread(target=self._run, name=f"kvtier-remote-{number}", daemon=True)
            for number in range(connections)
        ]
        for thread in self._threads:
            thread.start()

    # ---- for the owner ----

    def ask(self, keys: Sequence[bytes]) -> None:
        """Find out whether blocks are there; a store that is down has none."""
        with self._queue.changed:
            if self._queue.down_until_s is None:
                self._queue.asks.append(_Ask(keys))
                self._queue.changed.notify()
                return
        self.outbox.tell(Answered(keys, [False] * len(keys), self._now.generation))

    def order(self, orders: Sequence[Order]) -> None:
        """Begin to move blocks; each is reported."""
        with self._queue.changed:
            if self._queue.down_until_s is None:
                for order in orders:
                    (self._queue.writes if order.write else self._queue.reads).append(order)
                self._queue.changed.notify(len(orders))
                return
        self._end(orders, RemoteError("the remote tier is off"))

    def forget(self, keys: Sequence[bytes]) -> None:
        """Remove blocks from the store, before anything else is done; answered by Forgotten."""
        with self._queue.changed:
            if self._queue.down_until_s is None:
                self._queue.forgets.append(_Forget(keys))
                self._queue.changed.notify()
                return
        self.outbox.tell(Forgotten(keys, self._reason or _NOT_CONNECTED))

    def begin_epoch(self, epoch: str, generation: int) -> None:
        """Find from now on what is of this epoch alone, and write nothing that is not.

        The store is told, for whoever connects to it later: answered by EpochKept. What waits ends at once.
        """
        with self._queue.changed:
            self._now = _Now(generation, self._now.layout.of_epoch(epoch))
            self._unkept_epoch = epoch
            is_down = self._queue.down_until_s is not None
            if not is_down:
                self._queue.epochs.append(_KeepEpoch(epoch))
                self._queue.changed.notify()
        self._end(self._take_all(), RemoteError("the share was cleared"))
        if is_down:
            self.outbox.tell(EpochKept(epoch, self._reason or _NOT_CONNECTED))

    def probe(self) -> None:
        """Find out how fast the store is, with all connections at a time."""
        with self._queue.changed:
            if self._queue.down_until_s is None and not self._queue.probes:
                self._queue.probes.extend(Probe() for _ in self._threads)
                self._probes.begin(len(self._threads))
                self._queue.changed.notify_all()

    def keep_rates(self, rates: KeepRates) -> None:
        """Keep for other engines what was learnt, when nothing else is to be done."""
        with self._queue.changed:
            if self._queue.down_until_s is None and self.takes_writes:
                self._queue.rates.append(rates)
                self._queue.changed.notify()

    def keep_newest(self, keys: Sequence[bytes]) -> None:
        """Keep for other engines' starts what this one used last, when nothing else is to be done."""
        with self._queue.changed:
            if self._queue.down_until_s is None and self.takes_writes:
                self._queue.newest.append(_KeepNewest(keys[:NEWEST_KEYS]))
                self._queue.changed.notify()

    @property
    def takes_writes(self) -> bool:
        """Whether the store has not said that it is full."""
        return time.monotonic() >= self._full_until_s

    def stop(self) -> bool:
        """Have all threads end with what they are at; tells whether they have."""
        with self._queue.changed:
            self._queue.is_closing = True
            self._queue.changed.notify_all()
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """End all threads; what waits is given up."""
        self.stop()
        until_s = time.monotonic() + self._timings.closing_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        self._end(self._take_all(), RemoteError("the remote tier is closed"))

    # ---- the threads ----

    def _run(self) -> None:
        connection: StoreConnection | None = None
        connected_at = -1
        while (work := self._queue.take(connected_at)) is not None:
            under_way = _orders_of(work)
            try:
                if connection is None or connection.is_outdated or isinstance(work, _Connect | _Reconnect):
                    if connection is not None:
                        connection.close()
                    connected_at = self._queue.downs
                    connection = self._connect()  # and nothing waits for this thread
                self._do(connection, work, under_way)
                self._moves.pop(type(work), None)
                continue
            except ConnectorError as failure:
                error = failure
            except Exception as failure:  # noqa: BLE001 - whatever it is, the engine goes on without the store
                error = RemoteError(f"{type(failure).__name__}: {failure}")
            if connection is not None:  # not every error is a connection's, which closes itself
                connection.close()
            connection, connected_at = None, -1
            self._fail(work, under_way, error)
            del error  # whose traceback has this frame in it, and memory
        if connection is not None:
            connection.close()

    def _do(self, connection: StoreConnection, work: _Work, under_way: list[Order]) -> None:
        now = self._now  # looked at once: what is begun in one epoch does not end in another
        if any(order.generation != now.generation for order in under_way):
            self._end(under_way, RemoteError("the share was cleared"))
            under_way.clear()
            return
        match work:
            case _Ask(keys):
                present = self._ask_now(connection, now.layout, keys)
                self.outbox.tell(Answered(keys, present, now.generation))
            case Order():
                self._read(connection, now, under_way)
            case list():
                self._write(connection, now.layout, under_way)
            case Probe():
                self._probe(connection, now.layout)
            case _Reconnect():
                facts = connection.facts(self._patience_s)
                self._settle_epoch(connection)
                rates = self._read_rates(connection)
                newest = self._read_newest(connection) if self._reads_newest else ()
                self._reads_newest = False
                with self._queue.changed:
                    self._failures = 0
                    self._queue.down_until_s, self._queue.is_trying = None, False
                    if self._unkept_epoch:  # begun since the epoch was settled
                        self._queue.epochs.append(_KeepEpoch(self._unkept_epoch))
                    self._queue.changed.notify_all()
                self.outbox.tell(Up(facts, rates, newest))
                self.probe()  # how fast it is from here, before a request can ask for it
            case _:
                self._keep_or_forget(connection, now.layout, work)

    def _keep_or_forget(self, connection: StoreConnection, layout: BlockLayout, work: _Work) -> None:
        match work:
            case KeepRates(text):
                kept = Value(layout.rates_key, (memoryview(text.encode()),))
                connection.put(kept, self._ttl_s, self._patience_s)
            case _KeepNewest(block_keys):
                patience_s = max(self._patience_s, self._connect_timeout_s)  # it may be larger than blocks
                connection.put(layout.seal_newest(block_keys), self._ttl_s, patience_s)
            case _Forget(keys):
                self._forget(connection, layout, keys)
                self.outbox.tell(Forgotten(keys))
            case _KeepEpoch(epoch):
                self._keep_epoch(connection, epoch)
            case _:
                pass

    @property
    def _patience_s(self) -> float:
        return min(max(_SHORTEST_S, _PATIENCE * self._value_s), self._connect_timeout_s)

    def _ask_now(self, connection: StoreConnection, layout: BlockLayout, keys: Sequence[bytes]) -> list[bool]:
        """Ask whether blocks are there, and for the epoch, which a store that is full would evict else."""
        epoch_key = [layout.epoch_key] if layout.epoch else []
        sizes = connection.sizes([*map(layout.key, keys), *epoch_key], self._patience_s)
        if epoch_key and not sizes.pop():
            self._keep_epoch(connection, layout.epoch)
        return [size == layout.first_value_bytes for size in sizes]

    def _read_rates(self, connection: StoreConnection) -> str:
        return self._read_text(connection, self._now.layout.rates_key, _RATES_BYTES)

    def _read_text(self, connection: StoreConnection, key: bytes, most_bytes: int) -> str:
        [size_bytes] = connection.sizes([key], self._patience_s)
        if not 0 < size_bytes <= most_bytes:
            return ""
        text = bytearray(size_bytes)
        connection.request(Value(key, (memoryview(text),)))
        return text.decode(errors="replace") if connection.receive(self._patience_s) else ""

    def _read_newest(self, connection: StoreConnection) -> Sequence[bytes]:
        layout = self._now.layout
        [size_bytes] = connection.sizes([layout.newest(SEAL_BYTES).key], self._patience_s)
        if not SEAL_BYTES < size_bytes <= _NEWEST_BYTES:
            return ()
        value = layout.newest(size_bytes)
        connection.request(value)
        is_there = connection.receive(self._connect_timeout_s)
        return layout.unseal_newest(value) if is_there else ()

    # ---- forgetting ----

    def _keep_epoch(self, connection: StoreConnection, epoch: str) -> None:
        value = Value(self._now.layout.epoch_key, (memoryview(bytearray(epoch.encode())),))
        connection.put(value, 0, self._patience_s)
        with self._queue.changed:
            if self._unkept_epoch == epoch:
                self._unkept_epoch = ""
        self.outbox.tell(EpochKept(epoch))

    def _settle_epoch(self, connection: StoreConnection) -> None:
        """Tell the store of an epoch that it does not know, or begin the one that others have told it of."""
        own = self._unkept_epoch
        found = self._read_text(connection, self._now.layout.epoch_key, _MOST_EPOCH_BYTES) if not own else ""
        if own or not found:
            own = own or self._now.layout.epoch
            if own:
                self._keep_epoch(connection, own)
            return
        with self._queue.changed:
            if not self._unkept_epoch and found != self._now.layout.epoch:
                self._now = _Now(self._now.generation, self._now.layout.of_epoch(found))

    def _forget(self, connection: StoreConnection, layout: BlockLayout, keys: Sequence[bytes]) -> None:
        """Remove all pieces of blocks, the first ones first: by those a block is found."""
        pieces = [layout.key(key, piece) for piece in range(len(layout.pieces)) for key in keys]
        for start in range(0, len(pieces), _FORGOTTEN_AT_ONCE):
            connection.delete(pieces[start : start + _FORGOTTEN_AT_ONCE], self._patience_s)

    def _receive(self, connection: StoreConnection) -> bool:
        start_s = time.monotonic()
        is_there = connection.receive(self._patience_s)
        self._learn(time.monotonic() - start_s)
        return is_there

    def _learn(self, value_s: float) -> None:
        self._value_s += _FADING * (value_s - self._value_s)

    def _read(self, connection: StoreConnection, now: _Now, under_way: list[Order]) -> None:
        """Read a block and those that wait behind it, which are asked for before those ahead have come.

        What is damaged is removed before that is told, or who asks next would find it again.
        """
        asked = deque[tuple[Order, list[Value], float]]()
        damaged = list[tuple[Order, list[Value], float]]()
        waiting: Order | None = under_way[0]
        while waiting is not None or asked:
            if waiting is not None:
                values = now.layout.values(waiting.key, waiting.memory)
                for value in values:
                    connection.request(value)
                asked.append((waiting, values, time.monotonic()))
            may_go_on = len(asked) < REMOTE_DEPTH and not damaged
            waiting = self._take_read(now, under_way) if may_go_on else None
            if waiting is None:
                order, values, since_s = asked.popleft()
                are_there = [self._receive(connection) for _ in values]
                if not all(are_there):
                    self._tell_end(
                        under_way, order, since_s, VanishedBlockError("it has gone since it was asked for")
                    )
                elif now.layout.is_whole(order.key, values):
                    self._tell_end(under_way, order, since_s)
                else:
                    damaged.append((order, values, since_s))
                if not asked and not damaged:
                    waiting = self._take_read(now, under_way)
        if damaged:
            try:
                keys = [value.key for _, values, _ in damaged for value in values]
                connection.delete(keys, self._patience_s)
            finally:
                for order, _, since_s in damaged:
                    error = CorruptBlockError("it is not as it was written")
                    self._tell_end(under_way, order, since_s, error)

    def _take_read(self, now: _Now, under_way: list[Order]) -> Order | None:
        order = self._queue.take_read(now.generation)
        if order is not None:
            under_way.append(order)
        return order

    def _write(self, connection: StoreConnection, layout: BlockLayout, under_way: list[Order]) -> None:
        """Write those of some blocks that are not there yet; a block's first piece goes last."""
        present = self._ask_now(connection, layout, [order.key for order in under_way])
        for order, is_there in zip(tuple(under_way), present, strict=True):
            since_s = time.monotonic()
            if is_there:
                under_way.remove(order)
                self.outbox.tell(Ended(order, 0.0, since_s, None))
                continue
            values = layout.values(order.key, order.memory)
            layout.seal(order.key, values)
            for value in reversed(values):
                start_s = time.monotonic()
                connection.put(value, self._ttl_s, self._patience_s)
                self._learn(time.monotonic() - start_s)
            self._tell_end(under_way, order, since_s)

    def _tell_end(
        self, under_way: list[Order], order: Order, since_s: float, error: ConnectorError | None = None
    ) -> None:
        under_way.remove(order)
        now_s = time.monotonic()
        self.outbox.tell(Ended(order, now_s - since_s, now_s, error))

    def _probe(self, connection: StoreConnection, layout: BlockLayout) -> None:
        """Read a value again and again, at the same time as the other threads."""
        value = layout.probe()
        patience_s = max(self._patience_s, self._connect_timeout_s)
        if connection.sizes([value.key], patience_s) != [value.size_bytes]:
            connection.put(value, _PROBE_LASTS_S, patience_s)
        most = max(1, _PROBE_BYTES // (value.size_bytes * len(self._threads)))
        times, start_s = 0, time.monotonic()
        while times < most and time.monotonic() - start_s < _PROBE_TAKES_S:
            connection.request(value)
            if not self._receive(connection):
                raise VanishedBlockError("the value to measure with has gone")
            times += 1
        measured = self._probes.end(times * value.size_bytes, start_s, time.monotonic())
        if measured is not None:
            self.outbox.tell(measured)
            self.outbox.tell(Facts(connection.facts(patience_s)))

    # ---- failures ----

    def _fail(self, work: _Work, under_way: list[Order], error: ConnectorError) -> None:
        """Give up what a thread was at, and where the store is to blame, the store for a while."""
        if isinstance(error, RemoteFullError):
            self._full_until_s = time.monotonic() + self._timings.full_s
            self.outbox.tell(Full(str(error)))
        elif isinstance(work, _Reconnect | _Connect) or not isinstance(
            error, RemoteMovedError | VanishedBlockError
        ):
            self._go_down(str(error))
        elif isinstance(error, RemoteMovedError) and self._moved_too_often(work):
            self._go_down(str(error), self._timings.moved_s)
        if isinstance(work, _Ask):
            self.outbox.tell(Answered(work.keys, [False] * len(work.keys), self._now.generation))
        if isinstance(work, _Forget):
            self.outbox.tell(Forgotten(work.keys, str(error)))
        if isinstance(work, _KeepEpoch):
            self.outbox.tell(EpochKept(work.epoch, str(error)))
        if isinstance(work, Probe):
            self._probes.give_up()
        self._end(under_way, error)

    def _moved_too_often(self, work: _Work) -> bool:
        """Whether it goes on after every thread has connected again, as it does after a failover."""
        self._moves[type(work)] += 1
        return self._moves[type(work)] > 2 * len(self._threads)

    def _go_down(self, reason: str, least_s: float = 0.0) -> None:
        """Leave the store alone for a while, and end all that waits for it."""
        with self._queue.changed:
            was_down = self._queue.down_until_s is not None
            is_trying = self._queue.is_trying
            self._queue.downs += not was_down
            if not was_down or is_trying:
                self._failures += 1
                delay_s = max(least_s, self._timings.retry.delay_s(self._failures))
                self._queue.down_until_s = time.monotonic() + delay_s
                self._queue.is_trying = False
            self._queue.changed.notify_all()
            is_news = not was_down or (is_trying and reason != self._reason)
            self._reason = reason if is_news else self._reason
        self._end(self._take_all(), RemoteError(reason))
        self._refuse_to_forget(reason)
        if is_news:
            self.outbox.tell(Down(reason))

    def _take_all(self) -> list[Order]:
        """Let go of all that waits but what is to be forgotten; returns its orders."""
        with self._queue.changed:
            orders = [*self._queue.reads, *self._queue.writes]
            asks = list(self._queue.asks)
            for waiting in (self._queue.reads, self._queue.writes, self._queue.asks):
                waiting.clear()
            self._queue.probes.clear()
        for ask in asks:
            self.outbox.tell(Answered(ask.keys, [False] * len(ask.keys), self._now.generation))
        return orders

    def _refuse_to_forget(self, reason: str) -> None:
        with self._queue.changed:
            forgets, epochs = list(self._queue.forgets), list(self._queue.epochs)
            self._queue.forgets.clear()
            self._queue.epochs.clear()
        for forget in forgets:
            self.outbox.tell(Forgotten(forget.keys, reason))
        for epoch in epochs:
            self.outbox.tell(EpochKept(epoch.epoch, reason))

    def _end(self, orders: Sequence[Order], error: ConnectorError) -> None:
        for order in orders:
            self.outbox.tell(Ended(order, 0.0, time.monotonic(), error))


class _Probes:
    """What the threads have measured of a store that all of them read at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0
        self._size_bytes = 0
        self._start_s = self._end_s = 0.0

    def begin(self, threads: int) -> None:
        """Expect a figure of each thread."""
        with self._lock:
            self._left, self._size_bytes, self._start_s, self._end_s = threads, 0, inf, 0.0

    def end(self, size_bytes: int, start_s: float, end_s: float) -> Probed | None:
        """Add a thread's figure; returns that of all once the last has come."""
        with self._lock:
            self._left -= 1
            self._size_bytes += size_bytes
            self._start_s, self._end_s = min(self._start_s, start_s), max(self._end_s, end_s)
            return None if self._left else Probed(self._size_bytes, self._end_s - self._start_s)

    def give_up(self) -> None:
        """Have this round end without a figure."""
        with self._lock:
            self._left = 0


def _orders_of(work: _Work) -> list[Order]:
    if isinstance(work, Order):
        return [work]
    return list(work) if isinstance(work, list) else []
