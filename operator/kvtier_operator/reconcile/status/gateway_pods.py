"""kvtier's own gateway, without which no request comes in: part of RouterReady."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.not_created import NOT_CREATED
from kvtier_operator.reconcile.status.rollout import blocking_reason, replica_counts


@dataclass(frozen=True, slots=True)
class GatewayPods:
    """A gateway that there is or should be.

    Attributes:
        deployment: Its Deployment; None where there is none yet.
        not_ready: Its pods that are not ready, the most telling first.
    """

    deployment: DeploymentFacts | None
    not_ready: Sequence[NotReadyPod] = ()

    @property
    def count(self) -> str:
        """How many of its pods are ready."""
        return replica_counts(self.deployment, "gateway pods") if self.deployment else ""


def gateway_problem(gateway: GatewayPods) -> tuple[str, str] | None:
    """Reason and message of what keeps it from answering; None where nothing does."""
    facts = gateway.deployment
    if facts is None:
        return NOT_CREATED, "the gateway's Deployment is not there"
    if facts.complete:
        return None
    reason, message = blocking_reason(facts, gateway.not_ready)
    return reason, f"{gateway.count}; {message}" if message else gateway.count
