"""Fuzzes every target, as many at a time as there are cores: `python -m tests.fuzz --seconds 1800`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import click
from tests.fuzz.minimise import minimise
from tests.fuzz.targets import TARGETS
from tests.fuzz.timed import run_timed

CORPUS: Final = Path(__file__).parent / "corpus"
_LONGEST_BYTES: Final = 16 << 10
_HANGS_S: Final = 20
"""An input that takes so long is a fault at once."""
_MOST_MEMORY_MIB: Final = 1536
"""Of a process with all that it imports; an input that takes it is a fault at once, too."""
_SHOWN: Final = ("INITED", "pulse", "DONE")
"""Lines of libFuzzer that tell executions, coverage and corpus."""


def _check_names(_context: click.Context, _option: click.Parameter, names: Sequence[str]) -> Sequence[str]:
    """Refuses a name that is none with the ones that are."""
    for name in names:
        try:
            module = target(name)
        except (ImportError, ValueError, TypeError) as error:  # the latter two of names that cannot be one's
            raise click.BadParameter(
                f"{name!r} is none of {', '.join(TARGETS)}, and no module: {error}"
            ) from error
        if missing := [name for name in ("run", "SEEDS") if not hasattr(module, name)]:
            raise click.BadParameter(f"module {name} has no {' and no '.join(missing)}")
    return names


def target(name: str) -> ModuleType:
    """The module of a target.

    Raises:
        ImportError: There is none.
        ValueError: Nor could there be one of this name; so with TypeError.
    """
    return import_module(f"tests.fuzz.targets.{name}" if name in TARGETS else name)


@click.command(help=__doc__)
@click.option("--seconds", type=click.IntRange(1), default=1800, show_default=True, help="How long in all.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes at a time.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/fuzz"), show_default=True)
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_check_names,
    metavar="NAME",
    help=f"One of {', '.join(TARGETS)}, or a module with `run` and `SEEDS`; several times for more. "
    "Without it all.",
)
def main(seconds: int, jobs: int, out: Path, targets: Sequence[str]) -> None:
    """Exit 1 if any input crashes a target or takes too long; the least of it is shown and kept."""
    targets = targets or tuple(TARGETS)
    turn_s = max(1, seconds * min(jobs, len(targets)) // len(targets))
    click.echo(f"{len(targets)} targets, {jobs} at a time, {turn_s} s each")
    with ThreadPoolExecutor(jobs) as turns:
        faults = list(turns.map(lambda name: fuzz(name, turn_s, out / name), targets))
    found = [fault for each in faults for fault in each]
    click.echo(f"{len(found)} faults")
    sys.exit(bool(found))


def fuzz(name: str, seconds: int, out: Path) -> list[Path]:
    """Fuzz one target; returns the inputs that show faults, minimised."""
    corpus, faults = out / "corpus", out / "faults"
    shutil.rmtree(faults, ignore_errors=True)
    for folder in (corpus, faults):
        folder.mkdir(parents=True, exist_ok=True)
    module = target(name)
    for place, seed in enumerate(module.SEEDS):
        (corpus / f"seed-{place}").write_bytes(seed)
    kept = [str(CORPUS / name)] if (CORPUS / name).is_dir() else []
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_BYTES}",
        f"-timeout={_HANGS_S}",
        f"-rss_limit_mb={_MOST_MEMORY_MIB}",
        f"-artifact_prefix={faults}/",
    ]
    command = [sys.executable, "-m", "tests.fuzz.child", name, *options, str(corpus), *kept]
    with (
        (out / "log").open("w") as log,
        subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process,  # noqa: S603 - our own interpreter
    ):
        assert process.stderr
        for line in process.stderr:
            log.write(line)
            if line.startswith("#") and any(word in line for word in _SHOWN):
                click.echo(f"{name}: {' '.join(line.split())}")
    found = sorted(faults.iterdir())
    if process.returncode and not found:
        raise click.ClickException(f"{name}: ended with {process.returncode}: see {out / 'log'}")
    for fault in found:
        if not fault.name.startswith("timeout-"):  # would take that long again and again
            fault.write_bytes(minimise(lambda data: run_timed(module.run, data), fault.read_bytes()))
        click.echo(f"{name}: FAULT {fault}: {fault.read_bytes()[:200]!r}")
    return found


if __name__ == "__main__":
    main()
