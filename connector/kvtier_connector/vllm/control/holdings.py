"""What an engine's tiers hold, for people and programs that ask."""

from typing import Any

from kvtier_common.tier import Tier
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.upstream.device_cache import DeviceCache


def tiers_held(manager: KVTierManager, device: DeviceCache) -> list[dict[str, Any]]:
    """Return each tier's slots and how many are used; of those that know it, by whom and for how long.

    The device's slots are vLLM's blocks, the others' are chunks.
    """
    used, slots = device.usage
    held: list[dict[str, Any]] = [{"tier": Tier.GPU.label, "slots": slots, "used": used}]
    held.append(_tier(Tier.CPU, manager.slots_there, manager.memory.used, manager.memory))
    behind = manager.behind
    for kind in behind.kinds if behind is not None else ():
        if behind is not None:
            tier = behind.tier(kind)
            held.append(_tier(kind, tier.slots, tier.used, tier.index) | {"is_down": tier.is_down})
    return held


def _tier(kind: Tier, slots: int, used: int, index: BlockIndex | None) -> dict[str, Any]:
    held: dict[str, Any] = {"tier": kind.label, "slots": slots, "used": used}
    if index is not None:
        index.sweep()
        held |= {
            "retained": index.retained,
            "not_granted": index.not_granted,
            "by_share": index.held_by_tenant,
        }
    return held
