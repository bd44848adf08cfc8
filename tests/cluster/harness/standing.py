"""`make cluster-up` and `make cluster-down`: the tests' cluster, for a person, until it is taken down.

    python -m tests.cluster.harness.standing up | down [FOLDER]

One process holds the cluster and cleans it up when it is told to end; its number and the kubeconfig are in a
folder, by default one of the checkout.
"""

import json
import math
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
from tests.cluster.harness.images.engines import engine_mounts
from tests.cluster.harness.images.kvtier import ARCHIVES
from tests.cluster.harness.programs.tools import MissingToolError
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.provider import Ability, Cluster, lacking
from tests.shared.waiting import eventually

FOLDER: Final = Path(__file__).resolve().parents[3] / "build" / "cluster"
_HUGEPAGES: Final = 256
_DOWN_TIMEOUT_S: Final = 90.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster that stands: who holds it, and how to reach it."""

    pid: int
    kubeconfig: str

    @property
    def is_held(self) -> bool:
        """Whether the process that holds it is there, and not another with its number."""
        try:
            return b"harness.standing" in Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False


def standing(folder: Path = FOLDER) -> Standing | None:
    """The cluster that stands, if one does."""
    try:
        found = Standing(**json.loads((folder / "state.json").read_text()))
    except FileNotFoundError:
        return None
    return found if found.is_held else None


def up(folder: Path = FOLDER) -> int:
    """Starts a process that holds a cluster, unless one does, and says how to use it; returns a status."""
    if found := standing(folder):
        click.echo(f"a cluster is up already (process {found.pid})\nexport KUBECONFIG={found.kubeconfig}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").unlink(missing_ok=True)
    log = folder / "log"
    with log.open("wb") as sink:
        holder = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-u", "-m", "tests.cluster.harness.standing", "hold", str(folder)],
            cwd=Path(__file__).resolve().parents[3],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        found = _watched(holder, log, folder)
    except KeyboardInterrupt:
        holder.terminate()
        holder.wait()
        click.echo("stopped; nothing is left running")
        return 130
    if not found:
        return 3
    click.echo(f"export KUBECONFIG={found.kubeconfig}\nmake cluster-down takes it down")
    return 0


def down(folder: Path = FOLDER) -> int:
    """Ends the process that holds the cluster and waits until all is gone; returns an exit status."""
    if not (found := standing(folder)):
        click.echo("no cluster is up")
        return 0
    os.kill(found.pid, signal.SIGTERM)
    eventually(lambda: not found.is_held, f"end of process {found.pid}", _DOWN_TIMEOUT_S)
    click.echo("the cluster is down; nothing of it is left")
    return 0


def _watched(holder: subprocess.Popen[bytes], log: Path, folder: Path) -> Standing | None:
    """Prints what the holder says until its cluster stands, or it has ended."""
    with log.open() as lines:

        def is_over() -> bool:
            has_ended = holder.poll() is not None  # looked at first: all its lines are there then
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            return has_ended or standing(folder) is not None

        eventually(is_over, f"cluster; what makes it writes to {log}", math.inf)
    return standing(folder)


def _hold(folder: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    provider = chosen_provider()
    with ExitStack() as stack:
        cluster: Cluster
        if reason := lacking(provider, Ability.NODE):
            click.echo(reason)
            if reason := lacking(provider, Ability.CLUSTER):
                sys.exit(reason)
            cluster = stack.enter_context(provider.cluster(click.echo))
        else:
            mounts, images = engine_mounts(click.echo), [archive(click.echo) for archive in ARCHIVES]
            making = provider.node(click.echo, hugepages=_HUGEPAGES, images=images, mounts=mounts)
            cluster = stack.enter_context(making).cluster
        state = Standing(os.getpid(), str(cluster.kubeconfig(folder)))
        written = folder / "state.json.new"
        written.write_text(json.dumps(asdict(state)))
        stack.callback(Path(state.kubeconfig).unlink)
        stack.callback((folder / "state.json").unlink)
        written.rename(folder / "state.json")
        while True:
            signal.pause()


if __name__ == "__main__":
    try:
        asked, chosen = sys.argv[1], Path(sys.argv[2]) if sys.argv[2:] else FOLDER
        if asked == "hold":
            _hold(chosen)
        sys.exit({"up": up, "down": down}[asked](chosen))
    except MissingToolError as missing:
        sys.exit(str(missing))
