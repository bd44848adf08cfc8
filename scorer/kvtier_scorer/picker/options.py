"""How a picker is started."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvtier_scorer.config.errors import PickerConfigError
from kvtier_scorer.picker.observability.explain_access import ExplainAccess

if TYPE_CHECKING:
    from kvtier_scorer.config.settings.model import PickerSettings

POOL_GROUP: Final = "inference.networking.k8s.io"


@dataclass(frozen=True, slots=True)
class Pool:
    """An InferencePool of the cluster."""

    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that a picker is given.

    Attributes:
        settings: Of the EndpointPickerConfig.
        pods: Addresses `ip:port`, or the pool that selects them.
        host: Address to listen at; empty for every one.
        ext_proc_port: Of the service that gateways call.
        health_port: Of grpc.health.v1, always in the clear.
        http_port: Of metrics.
        explain: Who may ask for explanations, and where; None for nobody.
        tls: Whether the service is encrypted.
        certificates: Folder with tls.crt and tls.key; None for one of its own.
        grace_s: How long requests under way may take once it is told to stop.
    """

    settings: "PickerSettings"
    pods: tuple[str, ...] | Pool
    host: str
    ext_proc_port: int
    health_port: int
    http_port: int
    explain: ExplainAccess | None
    tls: bool
    certificates: Path | None
    grace_s: float


def pods_of(endpoints: str | None, name: str | None, namespace: str, group: str) -> tuple[str, ...] | Pool:
    """Where pods come from: exactly one of a list and a pool.

    Raises:
        PickerConfigError: Both, or neither, or a pool that this picker does not know.
    """
    if (endpoints is None) == (name is None):
        raise PickerConfigError("give either --endpoints or --pool-name: where the pods come from")
    if name is None:
        return tuple(filter(None, map(str.strip, (endpoints or "").split(","))))
    if group != POOL_GROUP:
        raise PickerConfigError(f"--pool-group: {group!r} is not known, InferencePools are of {POOL_GROUP}")
    return Pool(name, namespace)
