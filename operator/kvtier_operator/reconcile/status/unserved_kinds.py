"""Which desired objects cannot be created because the cluster does not serve their kinds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.api_server.kinds import AUTOSCALERS, Kind
from kvtier_operator.reconcile.apply.failure import ApplyFailure

_MONITORING = "monitoring"


@dataclass(frozen=True, slots=True)
class UnservedKinds:
    """Kinds of desired objects that the cluster does not serve.

    Attributes:
        missing_crds: CRDs that the router needs.
        left_out: CRDs that it works without, such as a ServiceMonitor's.
        failures: Kinds of the router's that the operator may not list.
        scaler_failures: The same of autoscalers.
    """

    missing_crds: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    failures: tuple[ApplyFailure, ...] = ()
    scaler_failures: tuple[ApplyFailure, ...] = ()


def unserved_kinds(
    kinds: Iterable[Kind], why_not: Callable[[str], str], not_installed: str = "not installed"
) -> UnservedKinds:
    """Sorts the kinds that are not served by what that means.

    Args:
        kinds: Kinds of the desired objects.
        why_not: Why a kind is not served; empty for one that is.
        not_installed: What `why_not` says of a kind that has no CRD.
    """
    reasons = {kind: why_not(kind.kind) for kind in kinds}
    absent = [kind for kind, why in reasons.items() if why == not_installed]
    failures = [
        ApplyFailure(
            Component.AUTOSCALER if kind.kind in AUTOSCALERS else Component.ROUTER,
            "Forbidden",
            f"{kind.kind} cannot be made: {why}",
        )
        for kind, why in reasons.items()
        if why and why != not_installed and not _is_extra(kind)
    ]
    return UnservedKinds(
        missing_crds=tuple(kind.crd for kind in absent if not _is_extra(kind)),
        left_out=tuple(kind.crd for kind in absent if _is_extra(kind)),
        failures=tuple(each for each in failures if each.component is Component.ROUTER),
        scaler_failures=tuple(each for each in failures if each.component is Component.AUTOSCALER),
    )


def _is_extra(kind: Kind) -> bool:
    return _MONITORING in kind.api_version
