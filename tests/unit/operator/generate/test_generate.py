import sys
from functools import cache
from pathlib import Path

import pytest

from kvtier_operator.generate import __main__, files

generated_files = cache(files.generated_files)
ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generates them once for all tests."""
    for module in (files, __main__):
        monkeypatch.setattr(module, "generated_files", generated_files)


def test_generated_files_are_up_to_date() -> None:
    assert files.out_of_date(ROOT) == []


def test_each_says_not_to_edit() -> None:
    for path in generated_files():
        # JSON has no comments: there the first key says it
        start = (ROOT / path).read_text().splitlines()[:2]
        assert "do not edit: run `make generate`" in "".join(start), path


def test_a_former_word_is_the_crds_alone_and_quoted() -> None:
    """Unquoted, YAML 1.1 reads false."""
    written = generated_files()
    text = written["manifests/base/kvcachetiers.kvtier.dev.yaml"]
    assert text.count("- 'Off'") == 2
    assert "- Off" not in text
    assert "`Off`" not in written["docs/reference/api.md"]


def test_check_names_what_differs_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(sys, "argv", ["generate", "--root", str(tmp_path), "--check"])
    assert __main__.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert sorted(line.split()[0] for line in told) == sorted(generated_files())
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]

    monkeypatch.setattr(sys, "argv", ["generate", "--root", str(tmp_path)])
    assert __main__.main() == 0
    assert files.out_of_date(tmp_path) == []
    changed = tmp_path / "docs/reference/api.md"
    changed.write_text(changed.read_text() + "by hand\n")
    assert files.out_of_date(tmp_path) == ["docs/reference/api.md"]
