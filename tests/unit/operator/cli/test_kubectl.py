import subprocess
import sys

import pytest

from kvtier_operator.cli import kubectl


def completions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-kvtier", *words])
    kubectl.complete()
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("-h",), "Usage: kubectl kvtier [OPTIONS] COMMAND [ARGS]..."),
        (("explain", "-h"), "Usage: kubectl kvtier explain [OPTIONS] [FIELD]"),
    ],
)
def test_usage_is_as_it_is_typed(words: tuple[str, ...], usage: str) -> None:
    program = "from kvtier_operator.cli.kubectl import main; main()"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(usage)


def test_commands_with_what_they_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completions(monkeypatch, capsys, "expl") == [
        "explain\tSay what a field of a KVCacheTier means.",
        ":4",
    ]
    assert len(completions(monkeypatch, capsys)) > len(completions(monkeypatch, capsys, "p"))


def test_values(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert completions(monkeypatch, capsys, "explain", "spec.tiers.c") == ["spec.tiers.cpu", ":4"]
    assert completions(monkeypatch, capsys, "plan", "-o", "j") == ["json", ":4"]


def test_a_file_is_left_to_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completions(monkeypatch, capsys, "plan", "-f", "cr") == [":0"]
