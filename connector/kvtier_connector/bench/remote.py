"""`kvtier bench remote`: whether a store will do for a remote tier, and how fast it is from here."""

import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvtier_common.redis_protocol import SHARE_PATTERN
from kvtier_common.terminal.say import say

if TYPE_CHECKING:
    from kvtier_connector.core.remote.examine import Examination

_FAILED: Final = 3
_MIB: Final = 1 << 20


@click.command(short_help="Whether a store will do for a remote tier, from where this runs.")
@click.option(
    "--url",
    required=True,
    help="As spec.tiers.remote.url: redis://HOST:PORT, rediss:// with TLS, mooncake://HOST:PORT.",
)
@click.option("--share", default="bench", show_default=True, help="Name that keys begin with, as shareAs.")
@click.option(
    "--capacity-mib",
    type=click.IntRange(0),
    default=0,
    help="What the tier is to hold: maxmemory is no less.",
)
@click.option(
    "--credentials",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with a file `password`, and `username` where there is one.",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificate of the authority that signed the store's.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1, max=3600.0),
    default=10.0,
    show_default=True,
    help="Seconds that each step may take.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON to write the figures to.")
def remote(  # noqa: PLR0913 - one parameter an option
    *,
    url: str,
    share: str,
    capacity_mib: int,
    credentials: Path | None,
    ca: Path | None,
    timeout_s: float,
    out: Path | None,
) -> None:
    """Sign in, ask for rights and bounds, and move 64 MiB there and back.

    Run it where engines run: the network between is what is measured. Exit status: 0 it will do, 2 bad
    input, 3 it will not.
    """
    from kvtier_connector.core.remote.engines import store_of  # noqa: PLC0415 - help needs none of it
    from kvtier_connector.core.remote.examine import examine  # noqa: PLC0415 - as above
    from kvtier_connector.core.remote.findings import Level  # noqa: PLC0415 - as above
    from kvtier_connector.core.remote.store import StoreSettings  # noqa: PLC0415 - as above
    from kvtier_connector.errors import SettingError  # noqa: PLC0415 - as above

    if not re.fullmatch(SHARE_PATTERN, share):
        raise click.BadParameter(
            "write lower-case letters, digits, - . and /, as for shareAs", param_hint="--share"
        )
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(out if out.exists() else out.parent, os.W_OK):
            raise click.BadParameter(f"{out} cannot be written", param_hint="--out")
    try:
        store = store_of(StoreSettings(url, str(credentials or ""), str(ca or ""), timeout_s))
    except SettingError as error:
        why = str(error).partition(": ")[2]
        raise click.BadParameter(why, param_hint="--url") from None
    examined = examine(store, share, capacity_mib * _MIB, timeout_s)
    for finding in examined.findings:
        say(f"{finding.level:<5} {finding.line}")
    if out is not None:
        _write(examined, out)
    if any(finding.level is Level.BAD for finding in examined.findings):
        sys.exit(_FAILED)


def _write(examined: "Examination", out: Path) -> None:
    out.write_text(json.dumps(asdict(examined), indent=2) + "\n", encoding="utf-8")
