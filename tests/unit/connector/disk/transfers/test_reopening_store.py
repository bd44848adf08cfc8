"""When a store that was let go of is opened again."""

from pathlib import Path

from tests.unit.connector.disk.rig.blocks import capacity_for, request_for

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS
from kvtier_connector.core.disk.transfers.reopening_store import ReopeningStore
from kvtier_connector.errors import DiskError


def test_a_disk_is_left_alone_for_a_while_that_doubles(tmp_path: Path) -> None:
    now, opened = [1000.0], list[float]()
    request = request_for(tmp_path, capacity_for(4))

    def reopen() -> Store:
        opened.append(now[0])
        if len(opened) < 3:
            raise DiskError("it still fails")
        return Store.open(request)

    served = ReopeningStore(Store.open(request), reopen, DEFAULT_TIMINGS, lambda: now[0])
    served.let_go()
    now[0] += 10
    assert served.try_again() is None  # the old store has the folder
    served.close_old()
    while served.store is None:
        served.try_again()
        now[0] += 0.5
    served.close()
    assert opened == [1010.0, 1012.0, 1016.0]


def test_a_disk_that_is_given_up_again_is_left_alone_for_longer(tmp_path: Path) -> None:
    now = [1000.0]
    request = request_for(tmp_path, capacity_for(4))
    served = ReopeningStore(Store.open(request), lambda: Store.open(request), DEFAULT_TIMINGS, lambda: now[0])

    def waited_s() -> float:
        """Return how long it takes until it is served again."""
        served.let_go()
        served.close_old()
        before_s = now[0]
        while served.try_again() is None:
            now[0] += 0.5
        return now[0] - before_s

    assert [waited_s() for _ in range(4)] == [1, 2, 4, 8]
    served.transfer_ended(None)
    assert waited_s() == 1
    served.close()
