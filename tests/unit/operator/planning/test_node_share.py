"""The largest CPU tier of a node's engines, by the planner's own budget."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.node_share import (
    NodeSize,
    node_reserve_bytes,
    share_node,
    with_cpu_tier,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.demand import memory_bytes
from kvtier_operator.planning.units import GIB

TIB = 1024 * GIB
PAGES = {"cpu": {"capacity": "1Gi", "hugepages": {"policy": "Require"}}}


@given(
    memory_gib=st.integers(160, 4096),
    ranks=st.sampled_from([1, 2, 8]),
    backend=st.sampled_from(["KVTier", "LMCache", "LMCacheMP"]),
    pages=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_what_it_says_fits_and_a_gibibyte_more_does_not(
    memory_gib: int, ranks: int, backend: str, pages: bool
) -> None:
    changes: dict[str, Any] = {"tiers": PAGES} if pages else {}
    one = resource(backend=backend, engine={"gpu": "h100", "tensorParallelSize": ranks}, **changes)
    share = share_node(one, Observed(), NodeSize(memory_gib * GIB, 8))
    assert share.engines == 8 // ranks
    room = memory_gib * GIB - node_reserve_bytes(memory_gib * GIB)

    def taken(capacity_bytes: int) -> int:
        return share.engines * memory_bytes(make_plan(with_cpu_tier(one, capacity_bytes), Observed()))

    assert taken(share.largest_bytes) <= room < taken(share.largest_bytes + GIB)


def test_how_many_of_the_planned_size_fit() -> None:
    one = resource(cpu="1Ti", engine={"gpu": "h100", "tensorParallelSize": 2})
    share = share_node(one, Observed(), NodeSize(2 * TIB))
    assert (share.gpus, share.engines, share.fitting) == (8, 4, 1)
    assert "at most each; with 1 TiB as planned here, 1 of 4 fit" in str(share)


@pytest.mark.parametrize(
    ("memory_gib", "gpus", "said"),
    [
        (40, 8, "which needs 9.00 GiB with a tier of 1 GiB"),
        (1024, 1, "an engine takes 2 GPUs, and the node has 1"),
    ],
)
def test_a_node_that_is_too_small(memory_gib: int, gpus: int, said: str) -> None:
    ranks = 2 if gpus == 1 else 1
    one = resource(engine={"gpu": "h100", "tensorParallelSize": ranks})
    with pytest.raises(InvalidInputError, match=said):
        share_node(one, Observed(), NodeSize(memory_gib * GIB, gpus))


def test_parts_of_gpus_are_counted_by_who_knows_how_many_there_are() -> None:
    slices = {"resources": {"limits": {"nvidia.com/mig-3g.40gb": 1}}}
    one = resource("Qwen/Qwen3-8B", cpu="1Gi", engine={"gpuMemory": "40Gi", **slices})
    with pytest.raises(InvalidInputError, match=r"mig-3g\.40gb is a part of a GPU: say by --node-gpus"):
        share_node(one, Observed(), NodeSize(TIB))
    assert share_node(one, Observed(), NodeSize(TIB, 16)).engines == 16
