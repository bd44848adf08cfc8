"""Each attack on the picker and on a bare grpc.aio server, with their neighbours.

python -m tests.bench.picker attacks --out build/bench/attacks.json
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from tests.picker.attacks.attackers.tally import cut_off
from tests.picker.attacks.catalogue import ATTACKS
from tests.picker.attacks.stage import Row, attack_server, bare_server, victim_of

_MIB: Final = 1 << 20
_COLUMNS: Final = (
    "attack", "server", "p50 / p99 before, ms", "under attack, ms", "another's, ms", "times as slow",
    "failed picks", "peak MiB", "what happened to the attacker",
)  # fmt: skip
_HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def figures(name: str, server: str, row: Row) -> dict[str, Any]:
    """One line of the table."""
    times = {"before": row.before, "during": row.during, "elsewhere": row.elsewhere}
    return {
        "attack": name,
        "server": server,
        **{
            f"{when}_{label}_s": round(report.quantile_s(share), 5)
            for when, report in times.items()
            for label, share in (("p50", 0.5), ("p99", 0.99))
        },
        "picks": len(row.during.took_s),
        "failed": dict(row.during.failed),
        "timeouts": row.during.timeouts,
        "quantile": ATTACKS[name].quantile,
        "slowdown": round(row.slowdown(ATTACKS[name].quantile), 2),
        "peak_mib": row.peak_bytes // _MIB,
        "limit_mib": row.limit_bytes // _MIB,
        "log_lines": len(row.log),
        "attacker": dict(row.tally),
        "cut_off": cut_off(row.tally),
        "probes": len(row.alive),
        "probes_failed": row.alive.count(False),
    }


def line(told: dict[str, Any]) -> str:
    """The same, for people."""

    def pair(when: str) -> str:
        return " / ".join(f"{1000 * told[f'{when}_{label}_s']:.1f}" for label in ("p50", "p99"))

    def counts(of: dict[str, int]) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in of.items()) or "none"

    slowdown = f"{told['slowdown']:.1f} (p{100 * told['quantile']:.0f})"
    cells = (
        ATTACKS[told["attack"]].says, told["server"], pair("before"), pair("during"), pair("elsewhere"),
        slowdown, counts(told["failed"]), f"{told['peak_mib']} of {told['limit_mib']}",
        counts(told["attacker"]),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/attacks.json"))
@click.option("--attack", "names", type=click.Choice(list(ATTACKS)), multiple=True, default=list(ATTACKS))
@click.option("--bare/--no-bare", default=True, help="Whether to attack the bare server, too.")
def main(out: Path, names: Sequence[str], *, bare: bool) -> None:
    """Attack, print a table, and write it as JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    click.echo(_HEAD)
    for name in names:
        attack = ATTACKS[name]
        with tempfile.TemporaryDirectory(prefix="kvtier-attacks-") as folder:
            with victim_of(attack, Path(folder)) as victim:
                server = "picker" if attack.gateway is None else "gateway"
                rows.append(figures(name, server, attack_server(name, attack, victim)))
            click.echo(line(rows[-1]))
            if bare and attack.bare:
                with bare_server(attack.files) as victim:
                    rows.append(figures(name, "grpc.aio", attack_server(name, attack, victim)))
                click.echo(line(rows[-1]))
        out.write_text(json.dumps(rows, indent=2) + "\n")
