"""Which blocks a clear means: of a tenant no fewer than are the tenant's, of others no more than must go."""

import numpy as np
import pytest

from kvtier_common.tier import Tier
from kvtier_connector.core.control.choice import Choice, choose
from kvtier_connector.core.control.orders import ClearOrder, PromptTokens
from kvtier_connector.core.index.hints import BlockHint, Sharing, TenantPart
from kvtier_connector.core.index.index import BlockIndex, BlockState

KEY_BYTES = 8
SHARING = Sharing(tenants={"a": TenantPart(0.5), "b": TenantPart(0.5)})
ALL = frozenset(Tier)
OF_A = ClearOrder(ALL, share="a")


def keys(first: int, count: int) -> list[bytes]:
    return [number.to_bytes(KEY_BYTES, "big") for number in range(first, first + count)]


NOBODYS, AS, BS = keys(0, 3), keys(10, 4), keys(20, 5)


def filled() -> BlockIndex:
    index = BlockIndex(64, KEY_BYTES, sharing=SHARING)
    for stored, hint in ((NOBODYS, None), (AS, BlockHint(tenant="a")), (BS, BlockHint(tenant="b"))):
        index.commit(index.reserve(stored, hint=hint).keys)
    return index


def chosen(index: BlockIndex, order: ClearOrder, *, may_have_strays: bool = False) -> tuple[set[bytes], int]:
    choice = choose(index, order, NOBODYS, may_have_strays=may_have_strays)
    assert len(set(choice.keys)) == len(choice.keys)
    return set(choice.keys), choice.of_unknown_owner


def test_where_all_was_computed_here_a_tenants_clear_is_of_its_blocks_alone() -> None:
    assert chosen(filled(), OF_A) == (set(AS), 0)


def test_what_came_from_elsewhere_in_this_tier_or_in_memory_has_nobodys_go_too() -> None:
    index = filled()
    assert chosen(index, OF_A, may_have_strays=True) == ({*AS, *NOBODYS}, len(NOBODYS))
    index.expect_strays()
    assert chosen(index, OF_A) == ({*AS, *NOBODYS}, len(NOBODYS))


@pytest.mark.parametrize("used_by", [None, "a", "b"])
def test_a_clear_after_a_restart_leaves_nothing_of_the_tenants(used_by: str | None) -> None:
    before = filled()
    _, rows = before.rows(0, before.capacity)
    index = BlockIndex(64, KEY_BYTES, sharing=SHARING)
    index.restore(rows, np.arange(len(rows), dtype=np.int32))
    if used_by is not None:  # whose they then are
        index.touch(BS, BlockHint(tenant=used_by))
    index.invalidate(choose(index, OF_A, [], may_have_strays=False).keys)
    assert {index.state(key) for key in AS} == {BlockState.ABSENT}
    stays = used_by == "b"
    assert {index.state(key) for key in BS} == {BlockState.READY if stays else BlockState.ABSENT}


def test_a_start_with_nothing_on_disk_and_a_clear_of_everything_leave_no_strays() -> None:
    index = BlockIndex(64, KEY_BYTES, sharing=SHARING)
    index.restore(np.empty((0, KEY_BYTES), np.uint8), np.empty(0, np.int32))
    assert not index.may_have_strays
    index.expect_strays()
    index.clear()
    assert not index.may_have_strays


def test_a_prompts_and_everything() -> None:
    index = filled()
    index.expect_strays()
    assert chosen(index, ClearOrder(ALL)) == ({*NOBODYS, *AS, *BS}, 0)
    assert chosen(index, ClearOrder(ALL, prompts=(PromptTokens((1,)),))) == (set(NOBODYS), 0)
    assert choose(None, OF_A, NOBODYS, may_have_strays=True) == Choice([])
