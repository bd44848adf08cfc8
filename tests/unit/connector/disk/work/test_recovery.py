"""When a store that was let go of is opened again."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.connector.disk.rig import capacity_for, request_for

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.work import recovery
from kvtier_connector.core.disk.work.recovery import Reopening
from kvtier_connector.errors import DiskError


def test_a_disk_is_left_alone_for_a_while_that_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, opened = [1000.0], list[float]()
    monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: now[0]))
    request = request_for(tmp_path, capacity_for(4))

    def reopen() -> Store:
        opened.append(now[0])
        if len(opened) < 3:
            raise DiskError("it still fails")
        return Store.open(request)

    disk = Reopening(reopen)
    disk.let_go(Store.open(request))
    now[0] += 10
    assert disk.try_again() is None  # the old store has the folder
    disk.close_old()
    disk.let_go(Store.open(request))
    disk.close_old()
    stores = list[Store]()
    while not stores:
        now[0] += 0.5
        stores += [store] if (store := disk.try_again()) else []
    stores[0].close()
    assert opened == [1011.0, 1013.0, 1017.0]


def test_a_disk_that_is_given_up_again_is_left_alone_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: now[0]))
    request = request_for(tmp_path, capacity_for(4))
    disk, store = Reopening(lambda: Store.open(request)), Store.open(request)
    waits = list[float]()
    for _ in range(4):
        disk.let_go(store)
        disk.close_old()
        before = now[0]
        while (found := disk.try_again()) is None:
            now[0] += 0.5
        waits.append(now[0] - before)
        store = found
    assert waits == [1, 2, 4, 8]
    disk.saw(None)
    disk.let_go(store)
    assert disk.try_again() is None
    disk.close_old()
    now[0] += 1
    found = disk.try_again()
    assert found is not None
    found.close()
