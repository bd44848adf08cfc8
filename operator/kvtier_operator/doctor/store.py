"""Whether the remote tier's store answers, lets engines in, and is bounded as the resource says."""

import socket
from collections.abc import Iterator, Mapping
from typing import Final

from kvtier_connector.core.remote.examine import examine
from kvtier_connector.core.remote.findings import Finding, Level
from kvtier_connector.core.remote.resp.store import RespStore
from kvtier_connector.core.remote.store import StoreSettings
from kvtier_connector.core.remote.urls import parse_address
from kvtier_connector.errors import SettingError
from kvtier_operator.doctor.verdict import Verdict
from kvtier_operator.planning.pod.demands import RemoteDemand

_CHECK: Final = "store"
_MOONCAKE: Final = "mooncake://"
_MASTER_PORT: Final = 50051
_STEP_S: Final = 5.0
"""Of signing in, and of each question: an engine's start waits for it."""
_FIELDS: Final[Mapping[str, str]] = {
    "remote_url": "url",
    "remote_credentials_path": "credentials",
    "remote_ca_path": "tls",
    "remote_capacity_bytes": "capacity",
}
_IN_USE: Final = frozenset({"remote_capacity_bytes"})
"""Settings in whose fault an engine uses the store all the same."""
_WITHOUT: Final = "the engine serves without the store until then"


def store(demand: RemoteDemand) -> Iterator[Verdict]:
    """A verdict for each finding; none of them fails, as an engine serves without its store, too.

    Nothing is written there, and nothing of its Secret is told.
    """
    if demand.url.startswith(_MOONCAKE):
        yield _master(demand.url)
        return
    settings = StoreSettings(demand.url, demand.credentials_path, demand.ca_path, _STEP_S)
    try:
        reached = RespStore.of(settings)
    except SettingError as error:
        yield Verdict.warned(
            _CHECK, str(error).replace("kv_connector_extra_config.remote_url", _field("url"))
        )
        return
    fields = {**_FIELDS, **({"remote_url": "managed"} if demand.managed else {})}
    for finding in examine(reached, demand.share, demand.capacity_bytes, _STEP_S, moving=False).findings:
        yield _verdict(finding, fields)


def _master(url: str) -> Verdict:
    """Whether a Mooncake master listens: its client, which could say more, is in the engine's image alone."""
    master = parse_address(url, url.removeprefix(_MOONCAKE), _MASTER_PORT, f"{_MOONCAKE}HOST:{_MASTER_PORT}")
    try:
        socket.create_connection((master.host, master.port), _STEP_S).close()
    except OSError as error:
        why = f"{master}: {error.strerror or error}; see that a master serves there, and that the network"
        return Verdict.warned(_CHECK, f"{_field('url')}: {why} lets this through; {_WITHOUT}")
    try_it = f"kvtier bench remote --url {url}, in an engine's container, tries the processes behind it"
    return Verdict.passed(_CHECK, f"the master {master} takes connections; {try_it}")


def _verdict(finding: Finding, fields: Mapping[str, str]) -> Verdict:
    if finding.level in {Level.GOOD, Level.NOTE}:
        return Verdict.passed(_CHECK, finding.line)
    line = f"{_field(fields[finding.setting])}: {finding.line}"
    is_lost = finding.level is Level.BAD and finding.setting not in _IN_USE
    return Verdict.warned(_CHECK, f"{line}; {_WITHOUT}" if is_lost else line)


def _field(name: str) -> str:
    return f"spec.tiers.remote.{name}"
