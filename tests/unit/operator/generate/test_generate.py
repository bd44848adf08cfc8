import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_operator.generate import files

ROOT = Path(__file__).parents[4]


def test_generated_files_are_up_to_date() -> None:
    assert files.out_of_date(ROOT) == []


@pytest.mark.parametrize("path", files.generated_files())
def test_says_not_to_edit(path: str) -> None:
    # JSON has no comments: there the first key says it
    assert "do not edit: run `make generate`" in "".join((ROOT / path).read_text().splitlines()[:2])


def test_off_is_quoted() -> None:
    """Unquoted, YAML 1.1 reads false."""
    text = files.generated_files()["manifests/base/kvcachetiers.kvtier.dev.yaml"]
    assert "default: 'Off'" in text
    assert "default: Off" not in text


def test_check_names_what_differs_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    command = [sys.executable, "-m", "kvtier_operator.generate", "--root", str(tmp_path)]
    check = subprocess.run(  # noqa: S603 - our own command
        [*command, "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 1
    assert sorted(line.split()[0] for line in check.stderr.splitlines()) == sorted(files.generated_files())
    assert [each.name for each in tmp_path.iterdir()] == ["pyproject.toml"]

    subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - as above
    assert files.out_of_date(tmp_path) == []
    changed = tmp_path / "docs/reference/api.md"
    changed.write_text(changed.read_text() + "by hand\n")
    assert files.out_of_date(tmp_path) == ["docs/reference/api.md"]
