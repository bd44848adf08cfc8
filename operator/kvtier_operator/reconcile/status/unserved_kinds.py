"""What the kinds that a cluster does not serve mean for a resource."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.api_server.kinds import Kind
from kvtier_operator.reconcile.apply.failure import ApplyFailure

_MONITORING = "monitoring"


@dataclass(frozen=True, slots=True)
class UnservedKinds:
    """Kinds of wanted objects that cannot be made.

    Attributes:
        missing_crds: CRDs without which the router is not complete.
        left_out: CRDs without which it works all the same, such as a ServiceMonitor's.
        failures: Kinds that the server does not let us see.
    """

    missing_crds: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    failures: tuple[ApplyFailure, ...] = ()


def unserved_kinds(
    kinds: Iterable[Kind], why_not: Callable[[str], str], not_installed: str = "not installed"
) -> UnservedKinds:
    """Sorts them out.

    Args:
        kinds: Kinds of the objects to have.
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
