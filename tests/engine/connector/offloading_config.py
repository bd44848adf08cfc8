"""vLLM's offloading configuration for a tier of 1024 chunks of 1 MiB, without an engine."""

from typing import Any

from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config


def offloading_config(**parallel: int) -> Any:  # noqa: ANN401 - vLLM publishes no types
    from vllm.v1.kv_offload.config import (  # noqa: PLC0415 - takes seconds
        OffloadingCacheConfig,
        OffloadingConfig,
        OffloadingGroupConfig,
        OffloadingModelConfig,
        OffloadingParallelConfig,
    )

    sizes = {"rank": 0, "world_size": 1, "tp_size": 1, "pp_size": 1, "pcp_size": 1, "dcp_size": 1} | parallel
    replicas = {"data_parallel_index": 0, "data_parallel_size": 1, "data_parallel_rank_local": None}
    return OffloadingConfig(
        groups=(OffloadingGroupConfig(16, ("layer",), 0),),
        worker_kv_bytes_per_block=1 << 20,
        enable_kv_cache_events=True,
        extra_config=kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=GIB))["kv_connector_extra_config"],
        engine_id="e",
        model=OffloadingModelConfig("m", "bfloat16"),
        cache=OffloadingCacheConfig(16, 1),
        parallel=OffloadingParallelConfig(**sizes, **replicas, is_parallelism_agnostic=False),
    )
