"""An engine whose connector can be taken out and put back between requests; vLLM imports all this by name.

Without it the engine does what one without a connector does, in the same process and on the same memory: two
processes of the very same settings differ by some percent for as long as they live.
"""

from typing import Any, Final

from typing_extensions import override
from vllm import LLM
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorTransferResults,
    SupportsHMA,
)
from vllm.v1.request import Request

from kvtier_connector.vllm.offloading.steps import NO_TRANSFERS
from kvtier_connector.vllm.upstream.connection import (
    Scheduler,
    SchedulersConnection,
    process_connector,
    set_process_connector,
)

_CONNECTED: Final = "kvtier_bench_connected"
"""Key of a request's `extra_args` that says with a bool whether the scheduler has its connector."""


class SwitchScheduler(Scheduler):  # type: ignore[misc] # vLLM has no types
    """Has its connector for the requests that say so; the workers are told apart."""

    _connection: SchedulersConnection | None = None

    @override
    def add_request(self, request: Request) -> None:
        """Take the connector out, or put it back, before a request; the engine must be at rest."""
        self._connection = self._connection or SchedulersConnection(self)
        connected = (request.sampling_params.extra_args or {}).get(_CONNECTED, True)
        self._connection.switch(connected=connected)
        super().add_request(request)


def switch(llm: LLM, *, connected: bool) -> dict[str, bool]:
    """Switch an engine's workers; returns the `extra_args` with which a request switches its scheduler."""
    llm.collective_rpc("set_connected", args=(connected,))
    return {_CONNECTED: connected}


class SwitchWorker:
    """What vLLM's worker inherits besides."""

    _connector: KVConnectorBase_V1 | None = None

    def set_connected(self, connected: bool) -> None:
        """Take the worker's connector out, or put it back."""
        self._connector = self._connector or process_connector()
        set_process_connector(self._connector if connected else None)


class EmptyConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc] # vLLM has no types
    """Does nothing, as fast as it can be done: what vLLM itself takes for any connector."""

    @override
    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None: ...

    @override
    def wait_for_layer_load(self, layer_name: str) -> None: ...

    @override
    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None: ...

    @override
    def wait_for_save(self) -> None: ...

    @override
    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        return KVConnectorTransferResults()

    @override
    def get_num_new_matched_tokens(self, request: Request, num_computed_tokens: int) -> tuple[int, bool]:
        return 0, False

    @override
    def update_state_after_alloc(self, request: Request, blocks: Any, num_external_tokens: int) -> None: ...

    @override
    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return NO_TRANSFERS

    @override
    def request_finished_all_groups(
        self, request: Request, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, None]:
        return False, None
