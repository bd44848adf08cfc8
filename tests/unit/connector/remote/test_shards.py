"""Real servers that know nothing of each other, each with its part of the keys."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared.stores import ENOUGH_S, Store, running, running_member
from tests.unit.connector.remote.cases import content, room_for, value_of
from tests.unit.connector.remote.tier_engine import KEYS as BLOCKS
from tests.unit.connector.remote.tier_engine import engines, layout_of

from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.remote.examine import examine
from kvtier_connector.core.remote.findings import Level
from kvtier_connector.core.remote.resp import cluster
from kvtier_connector.core.remote.resp.connect import Access, connect
from kvtier_connector.core.remote.resp.shards import shard_map
from kvtier_connector.core.remote.resp.slots import SLOTS, slot_of
from kvtier_connector.core.remote.resp.store import RespStore
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError

KEYS = [b"kvtier:share:{%d}:0" % number for number in range(60)]


@pytest.fixture
def shards(program: str, tmp_path: Path) -> Generator[list[Store]]:
    with ExitStack() as stack:
        yield [stack.enter_context(running(program, tmp_path / str(number))) for number in range(3)]


def together(stores: Sequence[Store]) -> Access:
    url = RespUrl(tuple(store.address for store in stores), tls=False, database=0)
    return replace(stores[0].access, url=url)


def owners(servers: Sequence[Address]) -> list[Address]:
    """Of each slot."""
    slots = shard_map(servers)
    return [slots.primaries[place] for place in slots.owners]


def owner(shards: Sequence[Store], key: bytes) -> Address:
    return owners([store.address for store in shards])[slot_of(key)]


def test_each_has_its_part_whoever_asks(shards: list[Store]) -> None:
    with closing(connect(together(shards))) as connection:
        for key in KEYS:
            connection.put(value_of(key, 1000), 0, ENOUGH_S)
        assert connection.facts(ENOUGH_S).maxmemory_bytes == 3 * 300 << 20
    held = {store.address: store.ask("DBSIZE") for store in shards}
    assert held == Counter(owner(shards, key) for key in KEYS)
    with closing(connect(together(shards[::-1]))) as connection:
        assert connection.sizes([*KEYS, b"absent"], ENOUGH_S) == [1000] * len(KEYS) + [0]
        for key in KEYS:
            room = room_for(key, 1000)
            connection.request(room)
            assert connection.receive(ENOUGH_S)
            assert content(room) == content(value_of(key, 1000))


def test_one_that_is_lost_takes_its_part_alone_and_is_taken_back(
    program: str, shards: list[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = shards[0]
    access = together(shards)
    with closing(connect(access)) as connection:
        for key in KEYS:
            connection.put(value_of(key, 1000), 0, ENOUGH_S)
        lost.process.kill()
        with pytest.raises(RemoteError):
            connection.sizes(KEYS, ENOUGH_S)
    left = [0 if owner(shards, key) == lost.address else 1000 for key in KEYS]
    assert 0 < sum(left) < len(KEYS) * 1000
    with closing(connect(access)) as connection:
        assert connection.sizes(KEYS, ENOUGH_S) == left
        assert not connection.is_outdated
        warnings = [
            finding.line
            for finding in examine(RespStore(access), "share", 0, ENOUGH_S).findings
            if finding.level is Level.WARN
        ]
        assert warnings == [
            f"{lost.address} does not answer: what it has is computed until it does; see that it serves there"
        ]
        monkeypatch.setattr(cluster, "LACKING_S", 0.0)
        assert connection.is_outdated
    with (
        running(program, tmp_path / "again", port=lost.address.port),
        closing(connect(access)) as connection,
    ):
        assert connection.sizes(KEYS, ENOUGH_S) == left, "it begins empty"
        connection.put(value_of(KEYS[left.index(0)], 1000), 0, ENOUGH_S)
        assert connection.sizes(KEYS, ENOUGH_S).count(0) == left.count(0) - 1
        assert not connection.is_outdated


@dataclass(frozen=True)
class Together:
    """What an engine connects to."""

    access: Access

    def connect(self) -> StoreConnection:
        """Connect to all."""
        return connect(self.access)


def test_an_engine_goes_on_with_the_rest(shards: list[Store]) -> None:
    keys = [layout_of().key(key) for key in BLOCKS]
    lost = next(store for store in shards if store.address == owner(shards, keys[0]))
    with engines(Together(together(shards)), "m") as [engine]:
        for slot in range(len(BLOCKS)):
            engine.fill(slot)
        engine.write(range(len(BLOCKS)))
        lost.process.kill()
        while not any(f"remote_url: {lost.address} does not answer" in note for note in engine.seen.notes):
            engine.read([0])
        engine.seen.loaded.clear()
        left = [owner(shards, key) != lost.address for key in keys]
        assert engine.ask(range(len(BLOCKS))) == [
            Presence.PRESENT if is_left else Presence.ABSENT for is_left in left
        ]
        engine.read([slot for slot, is_left in enumerate(left) if is_left])
        assert len(engine.seen.loaded) == sum(left)


def test_what_cannot_have_a_part_is_refused_by_name(
    shards: list[Store], program: str, tmp_path: Path
) -> None:
    first, second, _ = shards
    second.ask("REPLICAOF", first.address.host, str(first.address.port))
    with pytest.raises(RemoteError, match=rf"remote_url: {second.address} is a replica; name servers alone"):
        connect(together([first, second]))
    with (
        running_member(program, tmp_path / "member") as member,
        pytest.raises(RemoteError, match=rf"remote_url: {member.address} is of a cluster and others are not"),
    ):
        connect(together([first, member]))


@given(number=st.integers(1, 16))
def test_a_server_more_takes_its_part_from_all_and_moves_nothing_else(number: int) -> None:
    servers = [Address(f"store-{place}.models.svc", 6379) for place in range(number + 1)]
    before, after = owners(servers[:-1]), owners(servers)
    moved = {now for was, now in zip(before, after, strict=True) if was != now}
    assert moved == {servers[-1]}
    parts = Counter(after)
    assert len(parts) == number + 1
    assert max(parts.values()) < 1.25 * SLOTS / (number + 1)
