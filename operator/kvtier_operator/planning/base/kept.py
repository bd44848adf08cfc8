"""What the connector is told of what stays when room is needed, and where it is told more while it runs."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import Tier
from kvtier_operator.api.formats import seconds_of, share_of
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers import Ability

_USUAL_WARM_START_S: Final = 10
ATTACHED_CONTROL_FOLDER: Final = "/tmp/kvtier-control"  # noqa: S108 - of the container, made for its user alone
"""The same in a pod of others, which has no volume for it."""


def retained_shares(spec: Spec) -> Mapping[Tier, float]:
    """Part that may be retained, 0 to 1, of the tiers that a pod has for itself."""
    asked = {Tier.CPU: spec.tiers.cpu.retained}
    if spec.tiers.disk:
        asked[Tier.DISK] = spec.tiers.disk.retained
    return {tier: share_of(wanted.most) if wanted else RETAINED_SHARE for tier, wanted in asked.items()}


def warm_start_s(spec: Spec) -> int:
    """How long a start may wait for what was used last, before the engine serves."""
    asked, tiers = spec.engine.rollout.warm_start, spec.tiers
    if Ability.KEEPS not in spec.backend.abilities or not (tiers.disk or tiers.remote):
        return 0
    return seconds_of(asked) if asked is not None else _USUAL_WARM_START_S


def kept_settings(spec: Spec, control_folder: str) -> dict[str, Any]:
    """Settings of kvtier_connector.config of what stays when room is needed.

    Args:
        spec: What is wanted.
        control_folder: Where the engine makes its control socket.
    """
    return {
        **{f"{tier.label}_retained_share": share for tier, share in retained_shares(spec).items()},
        "tenants": {
            tenant.name: {"guaranteed": share_of(tenant.guaranteed), "most": share_of(tenant.most)}
            for tenant in spec.tenants
        },
        "control_path": control_folder,
        "warm_start_s": warm_start_s(spec),
    }
