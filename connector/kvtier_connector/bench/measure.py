"""Measures what kvtier bench connector is asked for, part by part, prints it and adds it to a JSON file."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import click
from rich.table import Table

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import json_file
from kvtier_common.terminal.console import PlainConsole
from kvtier_connector.bench.choices import COMPARED_PARTS, REMOTE
from kvtier_connector.bench.model import write_bench_model
from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions
from kvtier_connector.errors import ConnectorError

LIMIT_BYTES: Final = 4096
"""Of one container's termination message; Kubernetes cuts a longer one (pods, Termination message)."""
_FOR_AN_ERROR_BYTES: Final = 1024
_DIGITS: Final = 4  # that count: a benchmark repeats no closer
_OF_A_ROUND: Final = ("mean_ttft_s", "p90_ttft_s", "mean_e2e_s", "total_tokens_per_s", "hit_rate")
_OF_A_SIDE: Final = ("ready_s", "cold_s", "device_hit_s", "cpu_tier_s")

Row = tuple[str, str, str, str]  # what, measured, beside, limit


def p99(seconds: Sequence[float]) -> float:
    """Return the 99th percentile of what requests took."""
    return quantiles(seconds, n=100, method="inclusive")[-1]


@dataclass(frozen=True, slots=True)
class Part:
    """What a part's module has."""

    measure: "Callable[[Run], Any]"  # measures it; returns the figures as JSON has them
    rows: Callable[[Any], Iterable[Row]]  # rows of the table of these figures


def load(module: str) -> Part:
    """Load a part's module, of `PARTS`."""
    part = import_module(module)
    return Part(part.measure, part.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: the options, and behind them what is known when it begins."""

    model: Path | None  # folder of a model with weights; None for random ones
    shape: str  # sizes of the model with random weights
    out: Path  # file of the report, beside which logs are
    prompt_tokens: int  # prompt length of the parts that measure time to first token; of remote at most
    repeats: int  # their prompts
    sides: tuple[str, ...]  # what is compared on a GPU; empty for all
    turns: int  # lives of each of them
    termination_log: Path | None  # takes the figures for Kubernetes
    vllm_args: tuple[str, ...]  # of `vllm serve`, for the engines of ttft and workloads
    serve_options: ServeOptions = NO_SERVE_OPTIONS  # those, read
    gpu: str = ""  # its name; empty where vLLM computes on the CPU
    scratch: Path = Path()  # folder for the model
    say: Callable[[str], None] = print  # is told how far a part is

    def log(self, name: str) -> Path:
        """Return a file beside the report for the engines' output."""
        return self.out.parent / f"connector-{name}.log"

    def weights(self) -> Path:
        """Return the folder of a model with weights; random ones are written for the first part that asks."""
        if self.model is not None:
            return self.model
        folder = self.scratch / "weights"
        return folder if folder.exists() else write_bench_model(folder, self.shape)


def measure(run: Run, parts: Mapping[str, Part]) -> None:
    """Measure part by part: what is done is in the file, whatever becomes of the next.

    Raises click.ClickException: something cannot be measured as asked; the message is one line.
    """
    console = PlainConsole()
    run.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    about = {"shape": run.model.name if run.model else run.shape}
    with _left_behind(run.termination_log, done, about), tempfile.TemporaryDirectory() as scratch:
        gpu = _gpu() if {*COMPARED_PARTS, REMOTE} & {*parts} else ""
        if run.sides and not gpu:
            raise click.UsageError("--sides needs a GPU: on a CPU kvtier is measured beside no tier")
        about["device"] = gpu or "cpu"
        serve_options = ServeOptions.read(run.vllm_args)
        run = replace(run, serve_options=serve_options, gpu=gpu, scratch=Path(scratch), say=console.print)
        report: dict[str, Any] = json_file(run.out) if run.out.exists() else {}
        for name, part in parts.items():
            with console.status(f"measuring {name}"):
                report[name] = done[name] = part.measure(run)
            run.out.write_text(json.dumps(report, indent=2) + "\n")
    table = Table("what", "measured", "beside", "limit", title="kvtier connector")
    for name, figures in done.items():
        for row in parts[name].rows(figures):
            table.add_row(*row)
    console.print(table)
    console.print(str(run.out), style="dim")


@contextmanager
def _left_behind(path: Path | None, done: dict[str, Any], about: dict[str, str]) -> Iterator[None]:
    """Write what has been measured, and what ended it before all was, where Kubernetes looks."""
    error = "ended before all was measured"
    try:
        yield
        error = ""
    except (ConnectorError, MalformedError) as caught:
        error = str(caught)
        raise click.ClickException(error) from caught
    except click.ClickException as caught:
        error = caught.message
        raise
    finally:
        if path is not None:
            path.write_text(termination_message(done, about | _versions(), error), encoding="utf-8")


def _gpu() -> str:
    """Return the name of the GPU on which vLLM computes; empty where it is built for CPUs."""
    from vllm.platforms import current_platform  # noqa: PLC0415 - takes seconds, for two parts

    return str(current_platform.get_device_name()) if current_platform.is_cuda_alike() else ""


def _versions() -> dict[str, str]:
    from vllm import __version__  # noqa: PLC0415 - takes seconds

    return {"kvtier": version("kvtier"), "vllm": str(__version__)}


def termination_message(report: Mapping[str, Any], about: Mapping[str, str], error: str = "") -> str:
    """Return one line of JSON of at most `LIMIT_BYTES` bytes: the figures, and why there are no more.

    Parts without a short form, and those that do not fit, are named; an error is cut where it does not fit.
    """
    message: dict[str, Any] = {**about, **({"error": ""} if error else {})}
    left_out: list[str] = []
    limit_bytes = LIMIT_BYTES - (_FOR_AN_ERROR_BYTES if error else 0)
    for name, part in report.items():
        short = _SHORT[name](part) if name in _SHORT else None
        if short is None or _bytes(message | {name: short, "left_out": list(report)}) > limit_bytes:
            left_out.append(name)
        else:
            message[name] = short
    if left_out:
        message["left_out"] = left_out
    if error:
        message["error"] = _cut(error, message)
    return _text(message)


def _cut(error: str, message: Mapping[str, Any]) -> str:
    """Keep an error's end, where an engine says why it died."""
    while error and _bytes({**message, "error": error}) > LIMIT_BYTES:
        error = error[len(error) // 16 + 1 :]
    return error


def _text(message: Mapping[str, Any]) -> str:
    return json.dumps(_round(message), separators=(",", ":"))


def _bytes(message: Mapping[str, Any]) -> int:
    return len(_text(message).encode())


def _round(value: Any) -> Any:  # noqa: ANN401 - what JSON has
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _round(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round(item) for item in value]
    return value


def _ttft(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_only(part, ("prompt_tokens", "outputs_equal")),
        **{side: _only(figures, _OF_A_SIDE) for side, figures in part["sides"].items()},
    }


def _workloads(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _workload(section) for name, section in part.items() if isinstance(section, Mapping)}


def _workload(section: Mapping[str, Any]) -> dict[str, Any]:
    rounds = {side: _only(figures, _OF_A_ROUND) for side, figures in section["sides"].items()}
    return {
        "requests_differing": section["requests_differing"],
        **{side: {name: figures[name]["median"] for name in figures} for side, figures in rounds.items()},
    }


def _only(figures: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: figures[name] for name in names if name in figures}


_SHORT: Final = {"ttft": _ttft, "workloads": _workloads}
