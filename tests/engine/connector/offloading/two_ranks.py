"""Runs an engine of two ranks, tells what it found and waits to be killed. A program, not a test."""

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.engine.connector.prompts import answers, metric, overwrite, prompt
from tests.engine.connector.two_ranks import two_ranks
from tests.shared.waiting import eventually

from kvtier_connector.config import MIB

if TYPE_CHECKING:
    from vllm import LLM

_CHUNK_TOKENS: Final = 64
_TOKEN_BYTES: Final = 1024


def main(model: str, disk: str, descriptor: int) -> None:
    llm = two_ranks(
        model,
        disk_path=disk,
        disk_capacity_bytes=8 * MIB,
        disk_break_even=False,  # a tiny model computes as fast as a busy machine's disk reads
    )
    prompts = [prompt(length) for length in (100, 333, 700)]
    first, written_bytes = [], 0
    for ids in prompts:
        first.append(answers(llm, [ids])[0])
        written_bytes += (len(ids) // _CHUNK_TOKENS * _CHUNK_TOKENS - first[-1][1]) * _TOKEN_BYTES
        eventually(partial(_has_written, llm, written_bytes), "prompt on disk")
    overwrite(llm)
    warm = [answers(llm, [ids])[0] for ids in prompts]
    found = {
        "first": first,
        "warm": warm,
        "loaded_bytes": metric(llm, "vllm:kv_offload_load_bytes"),
        "disk_bytes": metric(llm, "vllm:kvtier_disk_load_bytes"),
    }
    with open(descriptor, "w", encoding="utf-8") as result:
        print(json.dumps(found), file=result)
    sys.stdin.read()  # whoever started it ends first, if it is not killed


def _has_written(llm: "LLM", size_bytes: int) -> bool:
    """Tell whether so much has been written, which happens beside the engine; figures come with a step."""
    answers(llm, [prompt(20)])
    return metric(llm, "vllm:kvtier_disk_store_bytes") >= size_bytes


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
