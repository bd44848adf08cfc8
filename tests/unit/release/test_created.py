from pathlib import Path

import pytest

from kvtier_release.commands import SOURCE_DATE_EPOCH, ReleaseError, created_s, timestamp


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCE_DATE_EPOCH, "315532800")
    assert timestamp(created_s(Path("/nowhere"))) == "1980-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["today", "-1", "315532799", "4294967296", "9" * 20])
def test_what_is_no_time_of_a_file_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(SOURCE_DATE_EPOCH, text)
    with pytest.raises(ReleaseError, match=f"SOURCE_DATE_EPOCH is '{text}': write seconds since 1970"):
        created_s(Path("/nowhere"))


def test_without_it_a_folder_that_is_no_clone_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SOURCE_DATE_EPOCH, raising=False)
    with pytest.raises(ReleaseError, match=r"git log: .*not a git repository.*; or set SOURCE_DATE_EPOCH"):
        created_s(tmp_path)
