import subprocess
from pathlib import Path

import pytest

from kvtier_release.commands import SOURCE_DATE_EPOCH, ReleaseError, created_s, timestamp, uncommitted_files


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


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607


def test_what_a_release_takes_and_no_commit_has_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "charts").mkdir()
    (tmp_path / "README.md").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "all")
    (tmp_path / "notes.txt").touch()
    assert uncommitted_files(tmp_path) == []
    (tmp_path / "README.md").write_text("more")
    (tmp_path / "charts" / "values of ours.yaml").touch()
    assert uncommitted_files(tmp_path) == ["README.md", "charts/values of ours.yaml"]


def test_a_folder_that_is_no_clone_has_nothing_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert uncommitted_files(tmp_path) == []
    monkeypatch.setenv("PATH", "")
    assert uncommitted_files(tmp_path) == []
