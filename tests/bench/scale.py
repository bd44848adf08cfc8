"""What `make bench-operator` runs: the operator beside a bare client, each with a real control plane."""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from tests.cluster.harness.operator.operator import start_operator
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.provider import Ability, lacking
from tests.cluster.scale import fleet
from tests.cluster.scale.bare import bare_ready_s
from tests.cluster.scale.latency import creation_to_last_object_ms
from tests.cluster.scale.operated import (
    count_changes,
    fleet_cluster,
    settled_writes,
    until_ready,
    until_resynced,
)
from tests.cluster.scale.versions import resource_versions

_MIB: Final = 1 << 20
_BARE_TIMES: Final = 2.0
"""The operator may take so many times as long as a bare client."""

console = Console(highlight=False)


async def measure(crs: int, steady_s: float, latency_crs: int, folder: Path) -> dict[str, Any]:
    """All figures: the bare client on one control plane, then the operator on another."""
    async with fleet_cluster(chosen_provider(), console.print) as (connection, _):
        bare_s = await bare_ready_s(connection, crs)
    console.print(
        f"bare client: {crs} x {len(fleet.objects(0))} objects, Deployments ready after {bare_s:.1f} s"
    )

    async with fleet_cluster(chosen_provider(), console.print) as (connection, kubeconfig):
        operator = start_operator(kubeconfig, folder / "operator.log")
        try:
            ready_s = await until_ready(connection, crs)
            console.print(f"operator: {crs} resources Ready after {ready_s:.1f} s")
            writes = await settled_writes(operator)
            before = await resource_versions(connection)
            await asyncio.sleep(steady_s)  # the length of the steady state is what is measured
            steady_writes = operator.writes() - writes
            differing = count_changes(before, await resource_versions(connection))
            rss = operator.resident_bytes()
            console.print(
                f"{steady_s:.0f} s of steady state: {steady_writes} writes, {differing} objects changed"
            )

            operator.kill()
            restarted_at = time.monotonic()
            operator = start_operator(kubeconfig, folder / "operator-restarted.log")
            await until_resynced(operator, crs)
            resync_s = time.monotonic() - restarted_at
            restart_writes = await settled_writes(operator)
            differing += count_changes(before, await resource_versions(connection))
            console.print(f"restart: resynchronised after {resync_s:.1f} s, {restart_writes} writes")

            latencies = await creation_to_last_object_ms(connection, range(crs, crs + latency_crs))
        finally:
            operator.stop()
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "crs": crs,
        "objects_per_cr": len(fleet.objects(0)),
        "bare_ready_s": bare_s,
        "all_ready_s": ready_s,
        "all_ready_over_bare": ready_s / bare_s,
        "writes_per_cr": writes / crs,
        "steady_state_s": steady_s,
        "steady_state_writes": steady_writes,
        "objects_changed_in_steady_state_and_restart": differing,
        "rss_mib": rss / _MIB,
        "restart_resync_s": resync_s,
        "restart_writes": restart_writes,
        "latency_crs": latency_crs,
        "apply_to_objects_p50_ms": cuts[49],
        "apply_to_objects_p99_ms": cuts[98],
    }


def _table(figures: dict[str, Any]) -> Table:
    table = Table("what", "measured", "limit", title=f"{figures['crs']} KVCacheTiers")
    bound = _BARE_TIMES * figures["bare_ready_s"]
    rows = (
        (
            "all Ready",
            f"{figures['all_ready_s']:.1f} s",
            f"{_BARE_TIMES} x {figures['bare_ready_s']:.1f} s = {bound:.1f} s",
        ),
        ("creation to last object, p50", f"{figures['apply_to_objects_p50_ms']:.0f} ms", ""),
        ("creation to last object, p99", f"{figures['apply_to_objects_p99_ms']:.0f} ms", "500 ms"),
        (
            "writes a resource",
            f"{figures['writes_per_cr']:.2f}",
            f"{figures['objects_per_cr']} objects and status",
        ),
        (
            f"writes in {figures['steady_state_s']:.0f} s of steady state",
            str(figures["steady_state_writes"]),
            "0",
        ),
        ("writes after a restart", str(figures["restart_writes"]), "0"),
        ("resynchronised after a restart", f"{figures['restart_resync_s']:.1f} s", ""),
        ("resident memory", f"{figures['rss_mib']:.0f} MiB", "250 MiB"),
    )
    for row in rows:
        table.add_row(*row)
    return table


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crs", type=int, default=1000)
    parser.add_argument(
        "--steady-s", type=float, default=300.0, help="length of the steady state, in seconds"
    )
    parser.add_argument("--latency-crs", type=int, default=100, help="resources made one a second")
    parser.add_argument("--out", type=Path, default=Path("build/bench/operator.json"))
    options = parser.parse_args()
    if reason := lacking(chosen_provider(), Ability.CONTROL_PLANE):
        sys.exit(reason)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kvtier-bench-") as folder:
        figures = asyncio.run(measure(options.crs, options.steady_s, options.latency_crs, Path(folder)))
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    console.print(_table(figures))
    console.print(options.out)


if __name__ == "__main__":
    main()
