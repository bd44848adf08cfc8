"""kvtier's picker beside the Gateway API Inference Extension's real 1.5.0, through one real Envoy.

python -m tests.bench.picker through-envoy --out build/bench/picker.json

Each picker has one core, and Envoy, the stand-in engines and the load have the others. The figures of
`envoy`, without a picker, say how much the load, Envoy and the engines can do: no picker can be measured
above them.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click
from tests.bench.picker.results import merge
from tests.bench.picker.through_envoy.figures import row
from tests.bench.picker.through_envoy.rounds import Rounds, Side, compare
from tests.bench.picker.through_envoy.shapes import SHAPES, Shape, templates
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.provider import Ability, Cluster, lacking
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.cores import Cores, split_cores, started_on
from tests.picker.harness.envoy import running_envoy
from tests.picker.harness.fleet import running_fleet_process
from tests.picker.harness.pickers.sides import SIDES, Setting
from tests.picker.harness.pool import install_picker_crds

_ENVOY: Final = "envoy"
_KEY: Final = "through_envoy"
_SEED: Final = 7
_DEFAULT: Final = Rounds()


def measure(
    shape: Shape, names: Sequence[str], how: Rounds, cluster: Cluster, cores: Cores
) -> dict[str, Any]:
    """The figures of one size, from processes that are gone afterwards."""
    with ExitStack() as stack:
        stack.enter_context(started_on(cores.others))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kvtier-bench-")))
        fleet = stack.enter_context(running_fleet_process(shape.pods))
        pickers = {}
        for name in names:
            own = folder / name
            own.mkdir()
            setting = Setting(fleet, cluster, cores.picker, own, click.echo)
            pickers[name] = stack.enter_context(SIDES[name](setting))
        gateways = [Gateway(name, picker.address) for name, picker in pickers.items()]
        envoy = stack.enter_context(running_envoy([Gateway(_ENVOY, None, fleet.pods), *gateways], folder))
        sides = [Side(_ENVOY, ("127.0.0.1", envoy.ports[_ENVOY]))] + [
            Side(name, ("127.0.0.1", envoy.ports[name]), picker.pid) for name, picker in pickers.items()
        ]
        return row(shape, compare(sides, templates(shape, "fake", _SEED), how, click.echo))


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/picker.json"))
@click.option("--side", "names", type=click.Choice(list(SIDES)), multiple=True, default=list(SIDES))
@click.option("--pods", type=int, multiple=True, help="Only the sizes with so many pods.")
@click.option("--rounds", default=_DEFAULT.rounds, help="Turns of each side.")
@click.option("--duration", "duration_s", default=_DEFAULT.duration_s, help="Seconds of a turn.")
@click.option("--connections", default=_DEFAULT.connections, help="Requests under way.")
def main(  # noqa: PLR0913, PLR0917 - one parameter an option
    out: Path, names: Sequence[str], pods: Sequence[int], rounds: int, duration_s: float, connections: int
) -> None:
    """Compare pickers behind one Envoy."""
    if reason := lacking(chosen_provider(), Ability.CONTROL_PLANE):
        sys.exit(reason)
    cores = split_cores(frozenset(os.sched_getaffinity(0)))
    how = Rounds(rounds=rounds, duration_s=duration_s, connections=connections)
    rows = []
    with started_on(cores.others), chosen_provider().control_plane(click.echo) as cluster:
        install_picker_crds(cluster)
        for shape in SHAPES:
            if not pods or shape.pods in pods:
                click.echo(f"{shape.pods} pods, prompts of {shape.prompt_tokens} tokens")
                rows.append(measure(shape, names, how, cluster, cores))
                merge(out, {_KEY: rows})
    click.echo(json.dumps(rows, indent=2))
