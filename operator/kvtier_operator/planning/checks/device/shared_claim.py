"""Whether every engine pod has devices of its own, where they are claimed."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("shared-claim", "spec.engine.resourceClaims")


def shared_claim(given: CheckInput) -> CheckResult:
    """A ResourceClaim is allocated once, and its devices are on one node as a rule."""
    replicas = given.spec.most_replicas
    shared = [
        (index, each.resource_claim_name)
        for index, each in enumerate(given.spec.engine.resource_claims)
        if each.resource_claim_name
    ]
    if not shared or replicas <= 1:
        return _VERDICTS.passed("no devices that pods share")
    index, name = shared[0]
    return _VERDICTS.warn(
        "ClaimShared",
        f"{replicas} engine pods would share the devices of ResourceClaim {name}, and its node: use "
        "resourceClaimTemplateName, which makes a claim with each pod",
        field=f"{_VERDICTS.field}[{index}].resourceClaimName",
    )
