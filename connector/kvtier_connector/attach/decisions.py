"""What becomes of an engine that others own: it gets the tier, or is left alone for one of these reasons.

Imports nothing heavy: whoever reads the metric has the names from here.
"""

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_connector.config import CONNECTOR_NAME, ConnectorConfig, Policy
from kvtier_connector.errors import SettingError
from kvtier_connector.payload import ATTACH_VARIABLE
from kvtier_connector.supported import TESTED_RELEASES, minor_of

INFO_METRIC: Final = "kvtier_attach_info"
"""Gauge on the engine's /metrics: 1, with the label `reason`."""
_MOST_CHARACTERS: Final = 1 << 16
_CAPACITIES: Final = ("cpu_capacity_bytes", "disk_capacity_bytes")
EXECUTORS: Final = ("mp", "uni")
"""Of vLLM's --distributed-executor-backend, those whose ranks share a machine's memory."""
_BOUNDS: Final = ("disk_write_bytes_per_hour", "remote_write_bytes_per_s")


class Reason(Enum):
    """Values of the metric's label; all but the first are of engines that are left alone."""

    ATTACHED = "Attached"
    HAS_CONNECTOR = "HasConnector"
    UNSUPPORTED_MODEL = "UnsupportedModel"
    NO_PREFIX_CACHING = "NoPrefixCaching"
    PIPELINE_PARALLEL = "PipelineParallel"
    SEVERAL_NODES = "SeveralNodes"
    SEVERAL_SERVERS = "SeveralServers"
    UNKNOWN_EXECUTOR = "UnknownExecutor"
    UNKNOWN_DEVICE = "UnknownDevice"
    UNKNOWN_VERSION = "UnknownVersion"
    BAD_SETTINGS = "BadSettings"
    PACKAGES_MISSING = "PackagesMissing"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an engine, and why in words."""

    reason: Reason
    why: str

    def __str__(self) -> str:
        if self.reason is Reason.ATTACHED:
            return f"attached: {self.why}"
        return f"this engine is left alone ({self.reason.value}): {self.why}"


class LeftAloneError(Exception):
    """The engine is to start as its owner wrote it."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.outcome = Outcome(reason, why)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What decides whether an engine can have the tier, as its arguments or its configuration say it."""

    connector: str  # name of the connector that it has; empty for none
    prefix_caching: bool  # whether it keeps prefixes; vLLM's choice counts as yes until it is made
    pipeline_ranks: int
    nodes: int  # over which one engine's ranks are spread
    executor: str = ""  # what starts its ranks; empty until vLLM has chosen
    is_one_of_several: bool = False  # a supervisor has started others in this pod, of which it does not know
    keeps_kv: bool = True  # whether its model has KV blocks; so until it is configured
    local_engines: int = 1  # data-parallel engines of this pod


def require_release(version: str, *, is_known_device: bool) -> None:
    """Leave engines alone that the connector does not run in (LeftAloneError)."""
    if minor_of(version) not in TESTED_RELEASES:
        minors = ", ".join(f"{minor}.x" for minor in TESTED_RELEASES)
        raise LeftAloneError(Reason.UNKNOWN_VERSION, f"this is vLLM {version}, and kvtier runs in {minors}")
    if not is_known_device:
        raise LeftAloneError(Reason.UNKNOWN_DEVICE, "its device is neither a GPU with CUDA nor a CPU")


def require_fit(facts: EngineFacts) -> None:
    """Leave engines alone that can have no tier, or have one (LeftAloneError)."""
    if facts.connector not in {"", CONNECTOR_NAME}:
        raise LeftAloneError(
            Reason.HAS_CONNECTOR,
            f"it has the KV connector {facts.connector}, and kvtier takes no other's place",
        )
    if not facts.keeps_kv:
        raise LeftAloneError(
            Reason.UNSUPPORTED_MODEL,
            "its model has an encoder and a decoder, or an encoder only, and vLLM has no connector for those",
        )
    if not facts.prefix_caching:
        raise LeftAloneError(
            Reason.NO_PREFIX_CACHING, "its prefix caching is off, which a tier stands behind; turn it on"
        )
    if facts.pipeline_ranks > 1:
        raise LeftAloneError(
            Reason.PIPELINE_PARALLEL, "it is pipeline-parallel (PP > 1), which kvtier does not support"
        )
    if facts.nodes > 1:
        raise LeftAloneError(
            Reason.SEVERAL_NODES, "its ranks are on several nodes, which cannot share the tier's memory"
        )
    if facts.executor not in {"", *EXECUTORS}:
        raise LeftAloneError(
            Reason.UNKNOWN_EXECUTOR,
            f"its ranks are started by {facts.executor}, maybe on other nodes, and kvtier knows those of "
            f"{' and '.join(EXECUTORS)} (--distributed-executor-backend)",
        )
    if facts.is_one_of_several:
        raise LeftAloneError(
            Reason.SEVERAL_SERVERS,
            "its pod has a server for each data-parallel rank (--data-parallel-multi-port-external-lb), and "
            "none knows its part of the tier",
        )


def require_first(*, is_first: bool) -> None:
    """Leave servers alone that another of their pod was before (LeftAloneError)."""
    if not is_first:
        raise LeftAloneError(
            Reason.SEVERAL_SERVERS,
            "another server of its pod has the tier, and neither knows its part of it: start the "
            "data-parallel ranks by one (--data-parallel-size-local)",
        )


def read_settings(text: str) -> ConnectorConfig:
    """Return what the variable says, for all engines of the pod. Raises LeftAloneError: it is not understood.

    What the tier would insist on (`Require`), it only prefers: the engine is another's.
    """
    try:
        settings = parse_json_object(text, most_bytes=_MOST_CHARACTERS)
    except MalformedError as error:
        raise _bad(str(error)) from error
    known = {field.name for field in fields(ConnectorConfig)} - {"attached"}  # which is written here
    if unknown := sorted(settings.keys() - known):
        raise _bad(f"{unknown[0]}: unknown setting; known are {', '.join(sorted(known))}")
    if "cpu_capacity_bytes" not in settings:
        raise _bad("cpu_capacity_bytes: missing; give the CPU tier's bytes")
    try:
        config = ConnectorConfig(**settings, attached=True)
    except SettingError as error:
        raise _bad(str(error).replace("kv_connector_extra_config.", "")) from error
    return replace(config, hugepages=_softened(config.hugepages), memlock=_softened(config.memlock))


def _softened(policy: Policy) -> Policy:
    return Policy.PREFER if policy is Policy.REQUIRE else policy


def share_of(pod: ConnectorConfig, engines: int) -> ConnectorConfig:
    """Return one engine's settings, of so many in the pod. Raises LeftAloneError: there is too little."""
    engines = max(engines, 1)
    parts: dict[str, Any] = {name: getattr(pod, name) // engines for name in _CAPACITIES}
    # 0 is no bound, so the least is 1
    parts |= {name: max(bound // engines, 1) for name in _BOUNDS if (bound := getattr(pod, name))}
    try:
        return replace(pod, **parts)
    except SettingError as error:
        raise _bad(f"for {engines} data-parallel engines: {error}") from error


def _bad(why: str) -> LeftAloneError:
    return LeftAloneError(Reason.BAD_SETTINGS, f"{ATTACH_VARIABLE}: {why}")
