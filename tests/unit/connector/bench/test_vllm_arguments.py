"""What a benchmark takes from vLLM's arguments, and what it refuses."""

import json

import pytest

from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions
from kvtier_connector.config import ConnectorConfig, kv_transfer_config
from kvtier_connector.errors import SettingError

TRANSFER = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=1 << 30, blocks_per_chunk=4))


def test_what_a_benchmark_computes_with() -> None:
    arguments = (
        *("--served-model-name", "some/model", "--port", "8000"),
        *("--tensor-parallel-size", "2", "--block-size", "32", "--enable-prefix-caching"),
        *("--kv-cache-dtype", "fp8", "--kv-transfer-config", json.dumps(TRANSFER), "--max-num-seqs=8"),
    )
    serve_options = ServeOptions.read(arguments)
    assert serve_options == ServeOptions(
        arguments=arguments, transfer=TRANSFER, block_tokens=32, ranks=2, cache_dtype="fp8"
    )


def test_nothing() -> None:
    assert ServeOptions.read(()) == NO_SERVE_OPTIONS
    assert ServeOptions.read(("-tp", "4")).ranks == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--block-size", "many"), "argument --block-size: invalid int value: 'many'"),
        (("--kv-transfer-config",), "argument --kv-transfer-config: expected one argument"),
        (("--kv-transfer-config", "{"), "argument --kv-transfer-config: '{' is not a JSON object: Expecting"),
        (("--kv-transfer-config", "[]"), "is not a JSON object"),
        (
            ("--kv-transfer-config", '{"kv_connector":"OffloadingConnector"}'),
            "kv_connector: got 'OffloadingConnector', must be 'KVTierConnector'",
        ),
        (("--kv-transfer-config", '{"kv_connector":"KVTierConnector"}'), "spec_name: got None"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        ServeOptions.read(arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
