import subprocess
from pathlib import Path

import pytest

from kvtier_release.commands import uncommitted_files


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
