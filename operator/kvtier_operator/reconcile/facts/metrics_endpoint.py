"""Where the engine of a pod that was given a tier serves its metrics, and its settings, as its pod tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_connector.payload import ATTACH_VARIABLE

_USUAL_PORT: Final = 8000
"""vLLM's default."""


@dataclass(frozen=True, slots=True)
class MetricsEndpoint:
    """A container, and where it serves."""

    container: str
    port: int
    scheme: str  # `http` or `https`
    settings: str  # value of KVTIER_ATTACH

    def address_in(self, status: Mapping[str, Any]) -> str:
        """Such as `https://10.0.0.1:8000`, of a pod that is ready; empty while it is not."""
        conditions = status.get("conditions") or ()
        ready = any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions)
        ip = status.get("podIP") or ""
        if not (ready and ip):
            return ""
        host = f"[{ip}]" if ":" in ip else ip
        return f"{self.scheme}://{host}:{self.port}"


def metrics_endpoint(pod: Mapping[str, Any]) -> MetricsEndpoint | None:
    """Reads a v1 Pod; None where no container of it was given a tier.

    The port is that which a kubelet asks whether the engine is ready, else the first that it names.
    """
    for container in pod["spec"]["containers"]:
        variables = {variable["name"]: variable.get("value") or "" for variable in container.get("env") or ()}
        if ATTACH_VARIABLE in variables:
            probe = (container.get("readinessProbe") or {}).get("httpGet") or {}
            return MetricsEndpoint(
                container=container["name"],
                port=_port(container, probe.get("port")),
                scheme="https" if str(probe.get("scheme")).lower() == "https" else "http",
                settings=variables[ATTACH_VARIABLE],
            )
    return None


def _port(container: Mapping[str, Any], probed: int | str | None) -> int:
    """The API server lets a probe name a port that is not there."""
    if isinstance(probed, int):
        return probed
    ports = container.get("ports") or ()
    named = [port["containerPort"] for port in ports if port.get("name") == probed and probed]
    return next((int(port) for port in (*named, *(port["containerPort"] for port in ports))), _USUAL_PORT)
