"""Huge pages that a benchmark reserves: put back if it got some, left alone if it got none."""

from pathlib import Path

import pytest

from kvtier_connector.bench.parts.memory import hugepages
from kvtier_connector.bench.parts.memory.hugepages import PAGE_BYTES, reserved


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pool of a kernel that finds every page that it is asked for."""
    path = tmp_path / "nr_hugepages"
    path.write_text("2\n")
    monkeypatch.setattr(hugepages, "_POOL", path)
    monkeypatch.setattr(hugepages, "_ALL", path)
    monkeypatch.setattr(hugepages, "free_pages", lambda _: int(path.read_text()))
    return path


def test_what_was_reserved_is_put_back(pool: Path) -> None:
    with reserved(5 * PAGE_BYTES) as missing:
        assert (missing, pool.read_text()) == ("", "5\n")
    assert pool.read_text() == "2\n"


def test_where_enough_is_free_nothing_is_touched(pool: Path) -> None:
    with reserved(2 * PAGE_BYTES) as missing:
        pool.write_text("7\n")  # somebody else's
    assert (missing, pool.read_text()) == ("", "7\n")


def test_where_it_may_not_reserve_others_are_left_alone(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: Path, _text: str) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refused)
        context = reserved(5 * PAGE_BYTES)
        missing = context.__enter__()
    assert missing.startswith("huge pages: 3 of 5 missing and not to be reserved")
    assert missing.endswith("Permission denied); do it as root")
    pool.write_text("7\n")  # somebody else's
    context.__exit__(None, None, None)
    assert pool.read_text() == "7\n"
