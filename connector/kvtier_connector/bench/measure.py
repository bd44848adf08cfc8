"""Measures what `kvtier bench connector` is asked for, prints it and adds it to a JSON file."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import json_file
from kvtier_common.terminal.console import PlainConsole
from kvtier_connector.bench.engines.given import Given
from kvtier_connector.bench.parts import Part
from kvtier_connector.bench.run import Run
from kvtier_connector.bench.shapes import DEMO
from kvtier_connector.bench.sides.names import COMPARED_PARTS, SIDES
from kvtier_connector.bench.summary import termination_message
from kvtier_connector.bench.table import table
from kvtier_connector.errors import ConnectorError


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
            raise click.UsageError(
                "--sides needs a GPU: on a CPU one engine has its connector in and out, in turns"
            )
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
