"""What a request finds in the tiers before a step, and whether the step loads it itself."""

from collections.abc import Callable

from vllm.v1.request import Request

from kvtier_connector.vllm.disk.tiering import DiskTiering
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.sync_loads import SyncLoads
from kvtier_connector.vllm.upstream.scheduler import UpstreamScheduler

Found = tuple[int | None, bool]
"""How many tokens the tiers have beyond the device's, None for a request that has to wait and be looked up
again; and whether they are loaded apart from the step that computes with them."""


class Lookups:
    """Looks requests up, one after the other.

    Args:
        upstream: vLLM's side.
        manager: The tiers' manager.
        sync_loads: Chooses the loads that a step does itself.
        match: vLLM's own lookup of a request, of which the device has so many tokens.
    """

    def __init__(
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        sync_loads: SyncLoads,
        match: Callable[[Request, int], Found],
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._sync_loads = sync_loads
        self._match = match
        self._last_touched = ""
        self.is_sync = False
        """Whether the step loads what was found last."""

    def look_up(self, request: Request, computed_tokens: int) -> Found:
        """Tell what the tiers have of a request.

        Args:
            request: The request.
            computed_tokens: What the device has already.
        """
        if self._sync_loads.shares_blocks(request):
            return None, False
        self._upstream.hold_manager_for_step()
        disk = self._manager.disk
        if disk is not None:
            disk.poll()
        tokens, apart = self._match(request, computed_tokens)
        if tokens is None and disk is not None and self._upstream.is_alone_with_one_request:
            # Nobody else would be served by another round through the engine.
            disk.on_schedule_end(in_parts=True)
            tokens, apart = self._match_ahead(disk, request, computed_tokens)
            if tokens is None:
                disk.wait()
                tokens, apart = self._match(request, computed_tokens)
        if tokens is not None and computed_tokens:
            self._touch(request.request_id, computed_tokens)
        self.is_sync = self._sync_loads.admits(request, computed_tokens, tokens or 0)
        return tokens, apart and not self.is_sync

    def _match_ahead(self, disk: DiskTiering, request: Request, computed_tokens: int) -> Found:
        """Find what is being read for a request, if a step can load it meanwhile."""
        if not disk.reads_in_parts:
            return None, False
        with disk.ahead(request.request_id):
            tokens, apart = self._match(request, computed_tokens)
        admitted = self._sync_loads.admits(request, computed_tokens, tokens or 0)
        return (tokens, apart) if tokens and admitted and disk.is_quick(tokens) else (None, False)

    def _touch(self, request_id: str, computed_tokens: int) -> None:
        """Have the tiers know what a request found on the device: upstream tells them nothing of it."""
        if request_id == self._last_touched:
            return  # it waits for room, and is asked for in every step
        self._last_touched = request_id
        context = self._upstream.context(request_id)
        for keys in self._upstream.keys(request_id, computed_tokens):
            if keys:
                self._manager.touch(keys, context)
