"""Runs an engine of two ranks, tells what it found and waits to be killed. A program, not a test."""

import json
import sys
from time import monotonic
from typing import Final

from tests.engine.connector.prompts import SMALL_DEVICE, answers, metric, overwrite, prompt

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

_OF_THE_PROMPTS_BYTES: Final = (64 + 320 + 640) * 1024
_WRITTEN_S: Final = 60.0


def main(model: str, disk: str, descriptor: int) -> None:
    from vllm import LLM  # noqa: PLC0415 - spawned workers import this module too

    tier = ConnectorConfig(
        cpu_capacity_bytes=4 * MIB,
        hugepages=Policy.OFF,  # the machine's may be another test's
        blocks_per_chunk=2,
        disk_path=disk,
        disk_capacity_bytes=8 * MIB,
    )
    llm = LLM(
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
    prompts = [prompt(length) for length in (100, 333, 700)]
    first = [answers(llm, [ids])[0] for ids in prompts]
    overwrite(llm)
    warm = [answers(llm, [ids])[0] for ids in prompts]
    # The disk is written beside the engine, and its figures come with a step.
    deadline = monotonic() + _WRITTEN_S
    while metric(llm, "vllm:kvtier_disk_used_bytes") < _OF_THE_PROMPTS_BYTES and monotonic() < deadline:
        answers(llm, [prompt(20)])
    found = {
        "first": first,
        "warm": warm,
        "loaded_bytes": metric(llm, "vllm:kv_offload_load_bytes"),
        "disk_bytes": metric(llm, "vllm:kvtier_disk_load_bytes"),
    }
    with open(descriptor, "w", encoding="utf-8") as result:
        print(json.dumps(found), file=result)
    sys.stdin.read()  # whoever started it ends first, if it is not killed


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
