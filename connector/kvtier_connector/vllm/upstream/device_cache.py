"""The device's prefix cache: which blocks requests find there.

Source: vLLM 0.32 and 0.33, kv_cache_manager.py, kv_cache_coordinator.py and block_pool.py in v1/core.
"""

from collections.abc import Iterable
from itertools import product
from typing import Any, Final
from weakref import WeakSet

from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import make_block_hash_with_group_id
from vllm.v1.request import Request

from kvtier_connector.vllm.upstream.compat import require_attributes

_ATTRIBUTES: Final = ("block_pool", "coordinator", "evict_blocks", "get_blocks")
_POOL_ATTRIBUTES: Final = (
    "blocks",
    "cached_block_hash_to_block",
    "cached_block_hashes_by_block",
)
_COORDINATOR_ATTRIBUTES: Final = ("cache_blocks", "single_type_managers")


class DeviceCache:
    """One engine's."""

    def __init__(self, manager: KVCacheManager) -> None:
        """Raises UnsupportedEngineError: vLLM's parts lack what is reached for, which is named."""
        require_attributes(manager, _ATTRIBUTES)
        require_attributes(manager.block_pool, _POOL_ATTRIBUTES)
        require_attributes(manager.coordinator, _COORDINATOR_ATTRIBUTES)
        self._manager = manager
        self._pool = manager.block_pool
        self._barred = WeakSet[Request]()
        self._is_barring = False

    @property
    def usage(self) -> tuple[int, int]:
        """Number of blocks that can be found, and of all that there are for requests."""
        return len(self._findable()), len(self._pool.blocks) - 1  # the first is a stand-in

    def clear(self) -> int:
        """Have no block found any more, also of those that requests use, and return how many those were.

        Whoever uses one goes on with it.
        """
        found = self._findable()
        self._manager.evict_blocks(found)
        return len(found)

    def forget(self, request: Request) -> int:
        """Have no block found any more that has a request's hashes, and return how many those were."""
        groups = [group.kv_cache_group_id for group in self._manager.coordinator.single_type_managers]
        found = set[int]()
        for group, block_hash in product(groups, request.block_hashes):
            # a group whose blocks hold more has the last of its hashes for each
            key = make_block_hash_with_group_id(block_hash, group)
            # several blocks may have one hash: vLLM does not make one of them
            while (block := self._pool.cached_block_hash_to_block.get_one_block(key)) is not None:
                if block.block_id in found:
                    raise RuntimeError(f"vLLM does not let go of block {block.block_id}")
                self._manager.evict_blocks({block.block_id})
                found.add(block.block_id)
        return len(found)

    def holds_for(self, request: Request) -> bool:
        """Tell whether a request has blocks."""
        return any(self._manager.get_blocks(request.request_id).blocks)

    def bar(self, requests: Iterable[Request]) -> None:
        """Have nothing found any more of what requests fill from now on, nor of what is filled for them."""
        if not self._is_barring:
            self._begin_barring()
        self._barred.update(requests)

    def _begin_barring(self) -> None:
        coordinator, barred = self._manager.coordinator, self._barred
        cache_blocks = coordinator.cache_blocks

        def cache_unless_barred(request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - vLLM's
            if request not in barred:
                cache_blocks(request, *args, **kwargs)

        coordinator.cache_blocks = cache_unless_barred
        self._is_barring = True

    def _findable(self) -> set[int]:
        with_hash = {block.block_id for block in self._pool.blocks if block.block_hash is not None}
        return with_hash | set(self._pool.cached_block_hashes_by_block)
