"""What a restart's lists cost an operator, by our reflectors and by Kopf: `python -m tests.bench.watches`.

Beside the objects of a fleet there are a tenant's own with the operator's label: large ones, and ones of many
small values. ADR 0029 has the figures.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from tests.cluster.harness.api.connection import Connection
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.scale import fleet
from tests.cluster.scale.operated import fleet_cluster

from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL

_SIDES: Final = ("reflectors", "kopf", "kopf-pages", "kopf-streams")
_LARGE: Final = {"value": "x" * 1_000_000}
_DENSE: Final = {f"key-{number:06}": "" for number in range(60_000)}

console = Console(highlight=False)


async def _config_maps(connection: Connection, name: str, data: Mapping[str, str], count: int) -> int:
    labels = {MANAGED_BY_LABEL: MANAGED_BY}
    for number in range(count):
        metadata = {"name": f"{name}-{number}", "namespace": fleet.NAMESPACE, "labels": labels}
        await connection.request(
            "POST", f"/api/v1/namespaces/{fleet.NAMESPACE}/configmaps", {"metadata": metadata, "data": data}
        )
    return count


def _watch(kubeconfig: Path, side: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.watches.watcher", side, str(count)]
    answer = subprocess.run(  # noqa: S603 - our own interpreter
        command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, capture_output=True, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return figures


async def _measure(crs: int, rounds: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    async with fleet_cluster(chosen_provider(), console.print) as (connection, kubeconfig):
        objects = [document for number in range(crs) for document in fleet.objects(number)]
        await connection.create_all(objects)
        count = len(objects)
        for scene, data, more in (("fleet", {}, 0), ("large", _LARGE, 60), ("dense", _DENSE, 40)):
            count += await _config_maps(connection, scene, data, more)
            for _ in range(rounds):
                for side in _SIDES:
                    figures = await asyncio.to_thread(_watch, kubeconfig, side, count)
                    rows.append({"scene": scene, "objects": count, **figures})
                    console.print(rows[-1])
    return rows


def main() -> None:
    """Measures in turns, prints medians and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crs", type=int, default=500, help="resources whose objects are there")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench/watches.json"))
    options = parser.parse_args()
    rows = asyncio.run(_measure(options.crs, options.rounds))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=2) + "\n")
    for scene in dict.fromkeys(row["scene"] for row in rows):
        for side in _SIDES:
            of_side = [row for row in rows if (row["scene"], row["by"]) == (scene, side)]
            told = (
                f"{name} {statistics.median(row[name] for row in of_side):.1f}"
                for name in ("seen_s", "cpu_s", "peak_mib")
            )
            console.print(f"{scene:6} {side:13}", *told)
    console.print(options.out)


if __name__ == "__main__":
    main()
