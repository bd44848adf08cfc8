"""`kvtier bench connector` without an engine: options, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kvtier_connector.bench import command, measure
from kvtier_connector.bench.measure import Part, Run
from kvtier_connector.bench.ttft import rows
from kvtier_connector.errors import ConnectorError

TTFT = {
    "device": "cpu",
    "prompt_tokens": 100,
    "repeats": 5,
    "turns": 1,
    "sides": {
        "kvtier": {
            "ready_s": 20.0,
            "cold_s": 2.0,
            "device_hit_s": 0.1,
            "cpu_tier_s": 0.125,
            "spread_s": {"cpu_tier": [0.1, 0.2]},
        }
    },
    "outputs_equal": True,
}


class Bench:
    """The command with parts that only say what they are asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.runs: list[Run] = []
        self.gpu = ""
        self.error: BaseException | None = None
        self.out = folder / "bench" / "connector.json"
        self.log = folder / "termination-log"
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.setattr(measure, "load", self._load)
        monkeypatch.setattr(measure, "_gpu", lambda: self.gpu)
        monkeypatch.setattr(measure, "_versions", lambda: {"kvtier": "0.1.0", "vllm": "0.33.0"})

    def _load(self, module: str) -> Part:
        if module.endswith("ttft"):
            return Part(self._ttft, rows)
        return Part(self._workloads, lambda _figures: ())

    def _ttft(self, run: Run) -> dict[str, Any]:
        self.runs.append(run)
        return TTFT

    def _workloads(self, _run: Run) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {}

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(command.connector, ["--out", str(self.out), *arguments])

    def left(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.log.read_text())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(monkeypatch, tmp_path)


def test_several_parts_and_their_figures(bench: Bench) -> None:
    result = bench.run("--only", "ttft,workloads", "--termination-log", str(bench.log))
    assert result.exit_code == 0, result.output
    assert "TTFT, 100 tokens, cpu" in result.output
    assert json.loads(bench.out.read_text()) == {"ttft": TTFT, "workloads": {}}
    left = bench.left()
    assert (left["shape"], left["device"], left["vllm"]) == ("demo", "cpu", "0.33.0")
    assert left["ttft"]["kvtier"]["cpu_tier_s"] == 0.125
    assert "error" not in left


def test_defaults_are_those_of_a_cpu(bench: Bench) -> None:
    bench.run("--only", "ttft")
    [run] = bench.runs
    assert (run.shape, run.gpu, run.serve_options.arguments) == ("demo", "", ())
    assert (run.prompt_tokens, run.repeats) == (15_400, 5)


def test_a_gpu_s_options(bench: Bench) -> None:
    bench.gpu = "NVIDIA H100"
    result = bench.run(
        *("--only", "ttft", "--shape", "qwen3-8b", "--sides", "none,kvtier", "--turns", "3"),
        *("--", "--block-size", "32", "--port", "8000"),
    )
    assert result.exit_code == 0, result.output
    [run] = bench.runs
    assert (run.gpu, run.shape, run.sides) == ("NVIDIA H100", "qwen3-8b", ("none", "kvtier"))
    assert (run.turns, run.serve_options.block_tokens) == (3, 32)
    assert run.serve_options.arguments == ("--block-size", "32", "--port", "8000")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "ttft,nothing"), "'nothing' is not one of 'region'"),
        (
            ("--only", "region,disk"),
            "'disk': measures kvtier itself; in its repository, make bench-connector",
        ),
        (("--shape", "gpt-9"), "'gpt-9' is not one of 'demo'"),
        (("--sides", "none,native"), "'native' is not one of 'none', 'vllm', 'vllm-disk', 'kvtier'"),
        (("--only", "ttft", "--sides", "none"), "--sides needs a GPU"),
        (("--only", "ttft", "--turns", "0"), "0 is not in the range x>=1"),
        (("--only", "ttft", "--", "--block-size", "x"), "argument --block-size: invalid int value"),
        (("--only", "ttft", "--blocksize", "16"), "No such option"),
    ],
)
def test_bad_input_is_named(bench: Bench, arguments: tuple[str, ...], message: str) -> None:
    result = bench.run(*arguments)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert not bench.out.exists()


def test_a_model_has_its_own_sizes(bench: Bench, tmp_path: Path) -> None:
    result = bench.run("--model", str(tmp_path), "--shape", "demo")
    assert "give --model or --shape" in result.output


def test_what_ended_it_is_left_behind_beside_what_was_measured(bench: Bench) -> None:
    bench.error = ConnectorError("the engine died: out of memory")
    result = bench.run("--only", "ttft,workloads", "--termination-log", str(bench.log))
    assert (result.exit_code, result.output.splitlines()[-1]) == (1, "Error: the engine died: out of memory")
    assert bench.left()["error"] == "the engine died: out of memory"
    assert bench.left()["ttft"]["kvtier"]["cold_s"] == 2.0
    assert json.loads(bench.out.read_text()) == {"ttft": TTFT}


def test_a_signal_s_end_is_left_behind(bench: Bench) -> None:
    bench.error = SystemExit(143)
    result = bench.run("--only", "ttft,workloads", "--termination-log", str(bench.log))
    assert result.exit_code == 143
    assert bench.left()["error"] == "ended before all was measured"


def test_without_the_command_kvtier_it_is_a_module() -> None:
    """As in the Job of `kvtier bench job`."""
    module = [sys.executable, "-m", "kvtier_connector.bench", "--only", "nothing"]
    done = subprocess.run(module, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: python3 -m kvtier_connector.bench [OPTIONS]")
