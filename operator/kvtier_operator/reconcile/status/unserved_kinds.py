"""Which desired objects cannot be created because the cluster does not serve their kinds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.api_server.kinds import Kind
from kvtier_operator.reconcile.apply.failure import ApplyFailure

_MONITORING = "monitoring"


@dataclass(frozen=True, slots=True)
class UnservedKinds:
    """Kinds of desired objects that the cluster does not serve.

    Attributes:
        missing_crds: CRDs that the router needs.
        left_out: CRDs that it works without, such as a ServiceMonitor's.
        failures: Kinds that the operator may not list.
    """

    missing_crds: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    failures: tuple[ApplyFailure, ...] = ()


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
    return UnservedKinds(
        missing_crds=tuple(kind.crd for kind in absent if not _is_extra(kind)),
        left_out=tuple(kind.crd for kind in absent if _is_extra(kind)),
        failures=tuple(
            ApplyFailure(Component.ROUTER, "Forbidden", f"{kind.kind} cannot be made: {why}")
            for kind, why in reasons.items()
            if why and why != not_installed and not _is_extra(kind)
        ),
    )


def _is_extra(kind: Kind) -> bool:
    return _MONITORING in kind.api_version
