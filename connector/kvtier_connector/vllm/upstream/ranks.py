"""The ranks of one engine, which share a region.

Source: vLLM 0.32 and 0.33, vllm/distributed/parallel_state.py.
"""

from vllm.distributed.parallel_state import GroupCoordinator, get_inner_dp_world_group, get_world_group

__all__ = ["GroupCoordinator", "engine_ranks"]


def engine_ranks() -> GroupCoordinator:
    """Return the ranks of this engine, without those of other data-parallel replicas."""
    try:
        return get_inner_dp_world_group()
    except AssertionError:  # how vLLM says that there is no such group
        return get_world_group()
