from pathlib import Path

import pytest

from kvtier_release.created import SOURCE_DATE_EPOCH, created_s, timestamp
from kvtier_release.errors import ReleaseError


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCE_DATE_EPOCH, "86400")
    assert timestamp(created_s(Path("/nowhere"))) == "1970-01-02T00:00:00Z"


def test_a_variable_that_is_no_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCE_DATE_EPOCH, "today")
    with pytest.raises(ReleaseError, match="SOURCE_DATE_EPOCH is 'today': write seconds since 1970"):
        created_s(Path("/nowhere"))


def test_without_it_a_folder_that_is_no_clone_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SOURCE_DATE_EPOCH, raising=False)
    with pytest.raises(ReleaseError, match=r"git log: .*not a git repository"):
        created_s(tmp_path)
