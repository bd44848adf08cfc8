"""`python3 -m kvtier_connector.control`, with engines that are servers of these tests."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.unit.connector.serve.fake_api import serving

from kvtier_connector.control import main
from kvtier_connector.core.control.client import socket_name
from kvtier_connector.core.control.socket_server import ControlServer

Order = Mapping[str, Any]


@pytest.fixture
def folder() -> Generator[Path]:
    with TemporaryDirectory(prefix="kvtier-") as folder:
        yield Path(folder)


def _answered(answer: Callable[[Order], Order], order: Order, _is_wanted: object) -> Order:
    return answer(order)


@contextmanager
def _engines(folder: Path, *answers: Callable[[Order], Order]) -> Generator[None]:
    with ExitStack() as stack:
        for rank, answer in enumerate(answers):
            server = ControlServer(folder, socket_name(rank), partial(_answered, answer))
            stack.callback(server.close)
        yield


@contextmanager
def _standard_input(text: str) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(text))
        yield


def test_every_engine_is_told_the_same_and_each_answers_with_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Order] = []

    def answer(order: Order) -> Order:
        told.append(order)
        return {"cleared": {"cpu": 5}}

    with _engines(folder, answer, answer):
        assert main(["--path", str(folder), "clear", "--tier", "cpu", "--share", "team"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"engine": f"engine-{rank}", "cleared": {"cpu": 5}} for rank in range(2)]
    assert told[0] == told[1], "one epoch for all"
    assert told[0]["epoch"]
    assert {name: told[0][name] for name in ("verb", "tier", "share")} == {
        "verb": "clear",
        "tier": "cpu",
        "share": "team",
    }


def test_one_that_fails_is_a_line_and_the_others_are_told_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_order: Order) -> Order:
        return {"error": "the disk\nis full"}

    with _engines(folder, fail, lambda _order: {"tiers": []}):
        assert main(["--path", str(folder), "top"]) == 1
    said = capsys.readouterr()
    assert [json.loads(line)["engine"] for line in said.out.splitlines()] == ["engine-0", "engine-1"]
    assert said.err == "kvtier: engine-0: the disk is full\n"


def test_a_prompt_of_standard_input_is_cleared_by_the_engines_own_token_ids(folder: Path) -> None:
    told: list[Order] = []

    def answer(order: Order) -> Order:
        told.append(order)
        return {}

    with _engines(folder, answer), serving() as (port, asked), _standard_input("You are a helpful"):
        arguments = ["--path", str(folder), "--port", str(port), "clear", "--prefix-of", "-"]
        assert main([*arguments, "--cache-salt", "s"]) == 0
    assert [(path, body) for path, body, _ in asked] == [("/tokenize", {"prompt": "You are a helpful"})]
    assert (told[0]["tokens"], told[0]["cache_salt"]) == ([[1, 2, 3]], "s")


def test_a_chat_is_prefetched_as_its_template_makes_it(folder: Path, tmp_path: Path) -> None:
    told: list[Order] = []

    def answer(order: Order) -> Order:
        told.append(order)
        return {"in_memory_tokens": 0}

    file = tmp_path / "chat.jsonl"
    file.write_text('{"messages": [{"role": "system", "content": "s"}]}\n{"tokens": [7]}\n')
    with _engines(folder, answer), serving() as (port, asked):
        arguments = ["--path", str(folder), "--port", str(port), "prefetch", str(file), "--format", "jsonl"]
        assert main(arguments) == 0
    assert [path for path, _, _ in asked] == ["/tokenize"]
    assert [order["tokens"] for order in told] == [[1, 2, 3], [7]]


@pytest.mark.parametrize(
    ("verb", "hints"),
    [
        (["warm"], None),
        (["warm", "--retain", "60", "--share", "team"], {"retain": 60.0, "share": "team"}),
        (["keep", "--for", "7200"], {"retain": 7200.0, "priority": "high"}),
    ],
)
def test_prompts_are_computed_with_what_is_said_of_them(
    verb: list[str], hints: Order | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as (port, asked), _standard_input('{"prompt": "a"}\n{"tokens": [1]}\n'):
        assert main(["--port", str(port), *verb]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["prompts"], said["computed"], said["tokens"], said["cached_tokens"]) == (2, 2, 14, 8)
    wanted = {"kvtier": hints} if hints else None
    assert [body.get("kv_transfer_params") for _, body, _ in asked] == [wanted] * 2


@pytest.mark.parametrize(
    ("chunk_tokens", "note"),
    [
        (7, None),
        (8, "2 of 2 prompts have fewer than the 8 tokens of a chunk, so no tier keeps anything of it"),
    ],
)
def test_a_prompt_without_a_whole_chunk_is_told_of(
    folder: Path, capsys: pytest.CaptureFixture[str], chunk_tokens: int, note: str | None
) -> None:
    """The API of the test says that each prompt has 7 tokens."""
    with (
        _engines(folder, lambda _order: {"chunk_tokens": chunk_tokens}),
        serving() as (port, _),
        _standard_input('{"prompt": "a"}\n{"tokens": [1]}\n'),
    ):
        assert main(["--path", str(folder), "--port", str(port), "keep", "--for", "60"]) == 0
    assert json.loads(capsys.readouterr().out).get("note") == note


@pytest.mark.parametrize(
    ("text", "named"), [("", "no prompt"), ("{\n", "line 1"), ('{"quest": "a"}', "line 1")]
)
def test_bad_input_is_one_line_that_says_where(
    text: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with _standard_input(text):
        assert main(["warm"]) == 1
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", ["--share", "--prefix-of"])
def test_a_part_without_a_name_clears_nothing(
    folder: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Order] = []

    def answer(order: Order) -> Order:
        told.append(order)
        return {}

    with _engines(folder, answer), pytest.raises(SystemExit) as ended:
        main(["--path", str(folder), "clear", option, ""])
    assert (ended.value.code, told) == (2, [])
    assert f"argument {option}: must be a" in capsys.readouterr().err.splitlines()[-1]


def test_where_no_engine_listens_one_line_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(folder / "none"), "top"]) == 1
    assert capsys.readouterr().err.startswith(f"kvtier: no engine listens in {folder}/none; ")


def test_it_is_a_module_that_runs_and_loads_no_vllm(folder: Path) -> None:
    with _engines(folder, lambda _order: {"tiers": []}):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "kvtier_connector.control", "top"],
            env=os.environ | {"KVTIER_CONTROL": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout) == {"engine": "engine-0", "tiers": []}
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"vllm", "torch", "numpy", "numba", "pydantic", "click"}
