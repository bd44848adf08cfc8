"""Huge pages that a benchmark reserves: put back if it got some, left alone if it got none."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.shared.hugepages import POOL, free_pages

from kvtier_connector.bench import region as bench_region
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.region import KINDS, PAGE_BYTES, reserve_hugepages
from kvtier_connector.config import GIB, MIB


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pool of a kernel that finds every page that it is asked for."""
    path = tmp_path / "nr_hugepages"
    path.write_text("2\n")
    monkeypatch.setattr(bench_region, "_POOL", path)
    monkeypatch.setattr(bench_region, "_ALL", path)
    monkeypatch.setattr(bench_region, "free_pages", lambda _: int(path.read_text()))
    return path


def test_what_was_reserved_is_put_back(pool: Path) -> None:
    with reserve_hugepages(5 * PAGE_BYTES) as missing:
        assert (missing, pool.read_text()) == ("", "5\n")
    assert pool.read_text() == "2\n"


def test_where_enough_is_free_nothing_is_touched(pool: Path) -> None:
    with reserve_hugepages(2 * PAGE_BYTES) as missing:
        pool.write_text("7\n")  # somebody else's
    assert (missing, pool.read_text()) == ("", "7\n")


def test_where_it_may_not_reserve_others_are_left_alone(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: Path, _text: str) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refused)
        context = reserve_hugepages(5 * PAGE_BYTES)
        missing = context.__enter__()
    assert missing.startswith("huge pages: 3 of 5 missing and not to be reserved")
    assert missing.endswith("Permission denied); do it as root")
    pool.write_text("7\n")  # somebody else's
    context.__exit__(None, None, None)
    assert pool.read_text() == "7\n"


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_region, "SAMPLE_BYTES", 8 * MIB)
    monkeypatch.setattr(bench_region, "ROUNDS", 2)
    # a region of transparent huge pages takes a GiB, however few bytes were asked for
    few = {name: kind for name, kind in KINDS.items() if name != "transparent"}
    monkeypatch.setattr(bench_region, "KINDS", few)


def test_each_kind_is_measured_and_the_pool_is_as_it_was(
    hugepage_pool: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(bench_region, "KINDS", KINDS)
    monkeypatch.setattr(bench_region, "ROUNDS", 1)
    hugepage_pool(1)
    before = POOL.read_text()
    figures = bench_region.measure(run)
    assert (POOL.read_text(), free_pages(), figures["missing"]) == (before, 1, "")
    assert [figures["samples"][name] for name in ("hugepage", "page4k", "page4k_shared")] == [1, 1, 1]
    assert figures["ratio"] == figures["page4k_s_per_gib"] / figures["hugepage_s_per_gib"]
    least, most = figures["hugepage_s_per_gib_spread"]
    assert least <= figures["hugepage_s_per_gib"] <= most
    assert figures["hugepage_locked_s_per_gib"] >= figures["hugepage_s_per_gib"]


def test_without_huge_pages_it_says_what_is_missing_and_measures_the_rest(
    hugepage_pool: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    hugepage_pool(1)
    pool = tmp_path / "nr_hugepages"
    pool.write_text("1\n")  # a pool that takes no order
    monkeypatch.setattr(bench_region, "_POOL", pool)
    figures = bench_region.measure(run)
    assert figures["missing"] == "huge pages: the kernel has no memory for 3 of 4"
    assert (figures["hugepage_s_per_gib"], figures["ratio"]) == (None, None)
    assert figures["page4k_s_per_gib"] > 0
    assert pool.read_text() == "1\n"


def test_seconds_are_a_gib(
    monkeypatch: pytest.MonkeyPatch, hugepage_pool: Callable[[int], None], run: Run
) -> None:
    hugepage_pool(4)
    sample = bench_region.Sample(taken=0.5, locked=None)
    monkeypatch.setattr(bench_region, "_start", lambda _kind: sample)
    figures = bench_region.measure(run)
    assert figures["page4k_s_per_gib"] == 0.5 * GIB / (8 * MIB)
    assert figures["page4k_locked_s_per_gib"] is None


def test_pages_that_others_take_meanwhile_are_said(
    hugepage_pool: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    hugepage_pool(4)
    real, calls = bench_region._start, iter(range(99))

    def robbed(kind: bench_region.Kind) -> bench_region.Sample | None:
        if kind.wanted.startswith("hugetlbfs") and next(calls) == 1:
            hugepage_pool(3)
        return real(kind)

    monkeypatch.setattr(bench_region, "_start", robbed)
    figures = bench_region.measure(run)
    assert figures["missing"] == "huge pages: in 2 of 2 rounds other processes had taken some of the pool"
    assert figures["samples"]["hugepage"] == 0
