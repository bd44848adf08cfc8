"""What is read of this machine."""

import os
import shutil
from pathlib import Path

import pytest

from kvtier_operator.cli.inputs.observe import free_hugepages, memlock_bytes, this_machine
from kvtier_operator.doctor import memory


def test_this_machine() -> None:
    machine = this_machine()
    assert machine.memory_bytes is not None
    assert 0 < machine.memory_bytes <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.shm_bytes is not None
    assert machine.free_hugepages is not None
    assert all(page_bytes % 4096 == 0 for page_bytes in machine.free_hugepages)


def test_reserved_huge_pages_are_no_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "physical_bytes", lambda: 24 << 30)
    monkeypatch.setattr(memory, "meminfo_bytes", lambda: {"Hugetlb": 11 << 30, "MemAvailable": 9 << 30})
    for limit, ordinary in ((None, 13 << 30), (16 << 30, 13 << 30), (4 << 30, 4 << 30)):
        monkeypatch.setattr(memory, "memory_limit_bytes", lambda limit=limit: limit)
        machine = this_machine()
        assert (machine.memory_bytes, machine.reserved_bytes) == (ordinary, 11 << 30)
        assert machine.available_bytes == min(9 << 30, ordinary)


def test_free_disk_is_that_of_the_tiers_folder(tmp_path: Path) -> None:
    free = this_machine(tmp_path).disk_free_bytes
    assert free is not None
    assert 0 < free <= shutil.disk_usage(tmp_path).total


def test_free_huge_pages_by_size(tmp_path: Path) -> None:
    for kib, pages in ((2048, 512), (1048576, 3)):
        pool = tmp_path / f"hugepages-{kib}kB"
        pool.mkdir()
        (pool / "free_hugepages").write_text(f"{pages}\n", encoding="ascii")
    assert free_hugepages(tmp_path) == {2 * 1024**2: 512, 1024**3: 3}


@pytest.mark.parametrize(
    ("effective", "limited"),
    [("0000000000004000", False), ("0000000000000000", True), ("00000000a80425fb", True)],
)
def test_the_memlock_limit_binds_without_the_capability(
    effective: str, limited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\nCapEff:\t{effective}\n", encoding="ascii")
    monkeypatch.setattr("resource.getrlimit", lambda _: (8 * 1024**2, 8 * 1024**2))
    assert memlock_bytes(tmp_path) == (8 * 1024**2 if limited else None)


def test_a_folder_that_is_not_there_yet_is_on_its_parents_disk(tmp_path: Path) -> None:
    found = this_machine(tmp_path / "not" / "yet").disk_free_bytes
    assert found is not None
    assert found <= shutil.disk_usage(tmp_path).total
