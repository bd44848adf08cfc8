"""The store beside engines of this machine."""

from pathlib import Path

import pytest
from tests.cases.planning import resource

from kvtier_common import store_program
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.store import LocalStore, StorePlace, with_local_store

MANAGED = {"cpu": {"capacity": "1Gi"}, "remote": {"capacity": "2Gi", "managed": {}}}


def test_a_store_that_kvtier_makes_is_on_this_machine() -> None:
    here, place = with_local_store(resource(tiers=MANAGED))
    assert place is not None
    remote = here.spec.tiers.remote
    assert remote is not None
    assert (remote.url, remote.managed, remote.credentials) == (place.url, None, None)
    assert place.memory_bytes == 2 << 30
    plain = resource()
    assert with_local_store(plain) == (plain, None)


async def test_it_runs_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    place = StorePlace.free(1 << 20)
    async with LocalStore(place, tmp_path / "store") as store:
        assert await store.values() == 0
    with pytest.raises(RuntimeFailedError, match="does not answer"):
        await store.values()


def test_what_is_missing_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_program, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeFailedError, match="no valkey-server or redis-server"):
        with_local_store(resource(tiers=MANAGED))
