"""Commands that pages show can be typed: kvtier's with their options, make's targets, the project's files."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

import click
import pytest
from tests.unit.docs.pages import PAGES, ROOT, fenced_blocks, name, quoted_words, without_fences

_PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_GROUPS: Final = {"": "kvtier.commands", "bench": "kvtier.bench"}
_TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_OF_ALL: Final = {"-h", "--help", "--version"}
_ENDS: Final = {"|", "||", "&&", "&", ";"}
_PART: Final = re.compile(r"\$\((kvtier [^)]*)\)|<\((kvtier [^)]*)\)")


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of a page's blocks, and of kvtier's in its prose; parts of a pipe apart."""
    blocks = {
        language: "".join(fenced_blocks(page, language)).replace("\\\n", " ")
        for language in ("console", "sh")
    }
    lines = [*blocks["sh"].splitlines(), *re.findall(r"^\$ (.*)$", blocks["console"], re.MULTILINE)]
    lines += [text for text in quoted_words(without_fences(page)) if re.match(r"(kubectl )?kvtier \w", text)]
    for line in lines:
        for part in [line, *(a or b for a, b in _PART.findall(line))]:
            yield from _parts(part)


def _parts(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _ENDS:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def wrong(words: Sequence[str]) -> str:
    """What of a command is not there; nothing if all is, or if it is another program's."""
    if words[:2] == ["kubectl", "kvtier"]:
        return _wrong_options(words[2:])
    match words:
        case ["kvtier", *rest]:
            return _wrong_options(rest)
        case ["make", *rest]:
            named = [word for word in rest if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
            return next((f"target {word}" for word in named if word not in _TARGETS), "")
        case _:
            return ""


def _wrong_options(words: Sequence[str]) -> str:
    if not words or words[0] in _OF_ALL:
        return ""
    command, rest = _command(words)
    if command is None:
        return f"command {' '.join(words[:2])}"
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | _OF_ALL
    # what follows -- is another program's
    match = [word.partition("=")[0] for word in rest[: [*rest, "--"].index("--")] if re.match(r"--?\w", word)]
    return next((f"option {each} of {words[0]}" for each in match if each not in known), "")


def _command(words: Sequence[str]) -> tuple[click.Command | None, Sequence[str]]:
    group, at = (words[0], 1) if words[0] in _GROUPS and len(words) > 1 else ("", 0)
    entry = _PROJECT["entry-points"][_GROUPS[group]].get(words[at])
    if entry is None:
        return None, words
    found: click.Command = EntryPoint(words[at], entry, "").load()
    return found, words[at + 1 :]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_can_be_typed(page: Path) -> None:
    assert [(words, missing) for words in commands(page) if (missing := wrong(words))] == []


def test_commands_are_found() -> None:
    found = [words for page in PAGES for words in commands(page)]
    assert len([words for words in found if words[:1] == ["kvtier"]]) > 30
    assert len([words for words in found if words[:2] == ["kubectl", "kvtier"]]) > 5


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_of_the_project_are_there(page: Path) -> None:
    named = [
        word for words in commands(page) for word in words if re.match(r"(docs|manifests|charts)/", word)
    ]
    assert [word for word in named if not (ROOT / word).exists() and "BACKEND" not in word] == []


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("kvtier plan -f cr.yaml --output=json", ""),
        ("kvtier plam -f cr.yaml", "command plam -f"),
        ("kvtier plan --colour", "option --colour of plan"),
        ("kvtier bench job --turns 3 -f -", ""),
        ("kvtier bench jobs", "command bench jobs"),
        ("kvtier bench job --turn 3", "option --turn of bench"),
        ("kubectl kvtier status NAME --namespace llm", ""),
        ("kubectl kvtier statuses NAME", "command statuses NAME"),
        ("make release publish REGISTRY=registry.example/team", ""),
        ("make documents", "target documents"),
        ("kubectl get pods --colour", ""),
    ],
)
def test_what_cannot_be_typed_is_found(line: str, missing: str) -> None:
    assert wrong(line.split()) == missing


def test_parts_of_a_line_are_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```console\n$ kvtier a \\\n    -x | kvtier b - # why\n$ eval "$(kvtier c -f x)"\nkvtier d\n```\n'
    )
    assert [words for words in commands(page) if words[:1] == ["kvtier"]] == [
        ["kvtier", "a", "-x"],
        ["kvtier", "b", "-"],
        ["kvtier", "c", "-f", "x"],
    ]
