"""How commands speak, and that they speak through nothing else."""

import ast
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kvtier_common.terminal import say
from kvtier_common.terminal.console import PlainConsole

ROOT = Path(__file__).parents[4]
FORGED = "a\x1b[31mb\x07c\x9bd\u202ee\u2028f\rg[red]h[/red][link=x]:smile:"
SHOWN = "a?[31mb?c?d?e?f g[red]h[/red][link=x]:smile:"
PRINTS = ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write")
NOBODYS = (  # they have no terminal: the first three write to who started them, the others are for developers
    "connector/kvtier_connector/control.py",  # JSON that escapes all, in an image without rich
    "operator/kvtier_operator/runtime/demo/prompts.py",
    "operator/kvtier_operator/runtime/guard.py",
    "connector/lay_out_payload.py",
    "operator/kvtier_operator/generate/",
    "operator/kvtier_release/",
)


def test_text_of_others_commands_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    say.say(f"{FORGED}\n{FORGED}")
    say.say(FORGED, err=True)
    say.complain(FORGED)
    say.say_whole(FORGED)
    say.say_row(FORGED, "b")
    assert capsys.readouterr() == (
        f"{SHOWN}\n{SHOWN}\n{SHOWN}\n{SHOWN}\tb\n",
        f"{SHOWN}\n{SHOWN}\n",
    )


def test_only_kvtier_paints() -> None:
    text = say.in_style(FORGED, "32") + f"\x02{'0' * 16}31\x03"
    assert say.style_text(text, colour=True) == f"\x1b[32m{SHOWN}\x1b[0m?{'0' * 16}31?"
    assert say.style_text(text, colour=False) == f"{SHOWN}?{'0' * 16}31?"


def test_json_is_the_same_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    value = {FORGED: [FORGED, "ä", "\U000e0041"]}
    say.say_json(value)
    said = capsys.readouterr().out
    assert json.loads(said) == value
    assert "ä" in said
    assert said.replace("\n", "").isprintable()


def test_an_error_is_as_long_as_somebody_reads(capsys: pytest.CaptureFixture[str]) -> None:
    say.complain("\n".join([say.in_style("x" * 1_000_000, "31")] * 1000))
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "and 900 lines more"
    assert len(lines) == 101
    assert {*lines[:-1]} == {"x" * 2000 + " ..."}


def test_tables_and_live_views() -> None:
    out = StringIO()
    console = PlainConsole(file=out)
    table = Table(title=FORGED)
    table.add_column(FORGED)
    table.add_row(FORGED)
    table.add_row(Text(FORGED, "bold"))
    console.print(table)
    console.print(FORGED, soft_wrap=True)
    with Live(table, console=console, auto_refresh=False):
        pass
    said = out.getvalue()
    assert said.count("a?[31mbc?d?e") == 9  # rich leaves out bells and carriage returns
    assert said.count("[red]h[/red][link=x]:smile:") == 9
    assert said.replace("\n", "").isprintable()


def test_styles_of_ones_own_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = StringIO()
    console = PlainConsole(file=out)
    console.print(Text(FORGED, "bold"), soft_wrap=True)
    assert out.getvalue() == "\x1b[1ma?[31mbc?d?e?fg[red]h[/red][link=x]:smile:\x1b[0m\n"


def printed(path: Path) -> Iterator[str]:
    """Where a file prints by itself."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in (*PRINTS, "sys.exit", "rich.console")):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module="rich.console") if "Console" in {name.name for name in node.names}:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: Console"
            case ast.Call():
                called = ast.unparse(node.func)
                of_text = called == "sys.exit" and any(
                    isinstance(argument, ast.JoinedStr) for argument in node.args
                )
                if of_text or called in PRINTS:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {called}"


def test_nothing_else_prints() -> None:
    files = [path for part in ("operator", "connector", "scorer") for path in (ROOT / part).rglob("*.py")]
    assert len(files) > 100
    by_itself = {
        each
        for path in files
        for each in printed(path)
        if not str(path.relative_to(ROOT)).startswith((*NOBODYS, "connector/kvtier_common/terminal/"))
    }
    assert not by_itself, "use kvtier_common.terminal"
