"""An engine of two ranks with a tier, for programs that a test starts."""

from typing import TYPE_CHECKING, Any

from tests.engine.connector.prompts import SMALL_DEVICE

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

if TYPE_CHECKING:
    from vllm import LLM


def two_ranks(model: str, **behind: Any) -> "LLM":  # noqa: ANN401 - settings of the connector
    """Start it; `behind` are the settings of a tier behind memory."""
    from vllm import LLM  # noqa: PLC0415 - spawned workers import this module too

    tier = ConnectorConfig(
        cpu_capacity_bytes=4 * MIB,
        hugepages=Policy.NEVER,  # the machine's may be another test's
        blocks_per_chunk=2,
        **behind,
    )
    return LLM(
        model,
        tensor_parallel_size=2,
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        block_size=32,
        disable_log_stats=False,
        kv_transfer_config=kv_transfer_config(tier),
        **SMALL_DEVICE,
    )
