from tests.unit.scorer.scheduling.pool import Pool, address

from kvtier_scorer.scheduling.scoring import fresh_readings, stale_pods


def test_pods_are_stale_from_their_first_moment_until_a_reading_and_again_after_it_aged() -> None:
    pool = Pool(3)
    staleness_s = pool.settings.metrics.staleness_s
    assert stale_pods(pool.settings, pool.table, 0.0) == 3
    pool.read(0, at_s=10.0)
    pool.read(1, at_s=10.0 + staleness_s / 2)
    assert stale_pods(pool.settings, pool.table, 10.0) == 1
    # at that age it still counts
    assert stale_pods(pool.settings, pool.table, 10.0 + staleness_s) == 1
    assert stale_pods(pool.settings, pool.table, 10.0 + 1.1 * staleness_s) == 2
    assert stale_pods(pool.settings, pool.table, 10.0 + 9 * staleness_s) == 3
    pool.table.drop(address(2))
    assert stale_pods(pool.settings, pool.table, 10.0) == 0


def test_no_pods_are_not_stale() -> None:
    pool = Pool(0)
    assert stale_pods(pool.settings, pool.table, 0.0) == 0


def test_fresh_is_said_of_the_pods_asked_for_in_their_order() -> None:
    pool = Pool(4)
    pool.read(1)
    pool.read(3)
    numbers = pool.table.candidates([address(1), address(2), address(3)])
    assert fresh_readings(pool.settings, pool.table, numbers, 0.0).tolist() == [True, False, True]
