"""Measures what kvtier bench connector is asked for, prints it and adds it to a JSON file."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import json_file
from kvtier_common.terminal.console import PlainConsole
from kvtier_connector.bench.choices import COMPARED_PARTS, DEMO, SIDES
from kvtier_connector.bench.part import Part, Run
from kvtier_connector.bench.vllm_arguments import Given
from kvtier_connector.errors import ConnectorError

LIMIT_BYTES: Final = 4096
"""Of one container's termination message; Kubernetes cuts a longer one (pods, Termination message)."""
_FOR_AN_ERROR_BYTES: Final = 1024
_DIGITS: Final = 4
"""That count: a benchmark repeats no closer."""
_OF_A_ROUND: Final = ("mean_ttft_s", "p90_ttft_s", "mean_e2e_s", "total_tokens_per_s", "hit_rate")
_OF_A_SIDE: Final = ("ready_s", "cold_s", "device_hit_s", "cpu_tier_s")


def termination_message(report: Mapping[str, Any], about: Mapping[str, str], error: str = "") -> str:
    """Return one line of JSON of at most `LIMIT_BYTES` bytes.

    Args:
        report: parts by name, as they are in the report's file; those without a short form are named.
        about: what was measured and where.
        error: why there is no more; it is cut where it does not fit.
    """
    message: dict[str, Any] = {**about, **({"error": ""} if error else {})}
    left_out: list[str] = []
    room_bytes = LIMIT_BYTES - (_FOR_AN_ERROR_BYTES if error else 0)
    for name, part in report.items():
        short = _SHORT[name](part) if name in _SHORT else None
        if short is None or _bytes(message | {name: short, "left_out": list(report)}) > room_bytes:
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
        return {key: _round(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_round(each) for each in value]
    return value


def _ttft(part: Mapping[str, Any]) -> dict[str, Any]:
    figures = {"prompt_tokens": part["prompt_tokens"], "outputs_equal": part["outputs_equal"]}
    return figures | {side: _only(found, _OF_A_SIDE) for side, found in part["sides"].items()}


def _workloads(part: Mapping[str, Any]) -> dict[str, Any]:
    sections = {name: section for name, section in part.items() if isinstance(section, Mapping)}
    return {name: _section(section) for name, section in sections.items()}


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "requests_differing": section["requests_differing"],
        **{
            side: {name: figures[name]["median"] for name in _OF_A_ROUND if name in figures}
            for side, figures in section["sides"].items()
        },
    }


def _only(figures: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: figures[name] for name in names if name in figures}


_SHORT: Final = {"ttft": _ttft, "workloads": _workloads}


def table(report: Mapping[str, Any], parts: Mapping[str, Part]) -> Table:
    """Return the table of figures by part: what they are compared with and what they should reach."""
    made = Table("what", "measured", "beside", "limit", title="kvtier connector")
    for name, figures in report.items():
        for row in parts[name].rows(figures):
            made.add_row(*row)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The options; None or empty where one was left out.

    Attributes are named as the options are.
    """

    model: Path | None
    shape: str | None
    out: Path
    only: tuple[str, ...]
    folder: Path | None
    prompt_tokens: int
    repeats: int
    sides: tuple[str, ...]
    turns: int
    termination_log: Path | None
    vllm_args: tuple[str, ...]


def measure(options: BenchOptions, parts: Mapping[str, Part]) -> None:
    """Measure part by part: what is done is in the file, whatever becomes of the next.

    Args:
        options: of the command line.
        parts: what is measured, by name.

    Raises:
        click.ClickException: Something cannot be measured as asked; the message is one line.
    """
    console = PlainConsole()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    about = {"shape": options.model.name if options.model else options.shape or DEMO}
    with _left_behind(options.termination_log, done, about), tempfile.TemporaryDirectory() as scratch:
        gpu = _gpu() if {*COMPARED_PARTS} & {*parts} else ""
        if options.sides and not gpu:
            raise click.UsageError("--sides needs a GPU: on a CPU kvtier is measured beside no tier")
        about["device"] = gpu or "cpu"
        run = _run(options, Path(scratch), gpu, console.print)
        report: dict[str, Any] = json_file(options.out) if options.out.exists() else {}
        for name, part in parts.items():
            with console.status(f"measuring {name}"):
                report[name] = done[name] = part.measure(run)
            options.out.write_text(json.dumps(report, indent=2) + "\n")
    console.print(table(done, parts))
    console.print(str(options.out), style="dim")


def _run(options: BenchOptions, scratch: Path, gpu: str, say: Callable[[str], None]) -> Run:
    return Run(
        model=options.model,
        shape=options.shape or DEMO,
        scratch=scratch,
        out=options.out,
        folder=(options.folder or options.out.parent).resolve(),
        prompt_tokens=options.prompt_tokens,
        repeats=options.repeats,
        gpu=gpu,
        sides=options.sides or SIDES,
        turns=options.turns,
        given=Given.read(options.vllm_args),
        say=say,
    )


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
