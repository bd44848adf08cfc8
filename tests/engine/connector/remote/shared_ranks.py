"""Runs an engine of two ranks before a store and prints what it found as JSON. A program, not a test."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.engine.connector.prompts import answers, metric, overwrite, prompt
from tests.engine.connector.two_ranks import two_ranks
from tests.shared.stores import ENOUGH_S
from tests.shared.waiting import eventually

from kvtier_connector.config import MIB
from kvtier_connector.core.remote import transfers

if TYPE_CHECKING:
    from vllm import LLM


_STORED: Final = "vllm:kvtier_remote_store_bytes"
transfers._SHORTEST_S = ENOUGH_S  # type: ignore[misc] # here: the scheduler's process imports this, too


def main(model: str, url: str, result: str, written_bytes: int) -> None:
    """Ask prompts, and again with the device emptied; end when so much has been written."""
    llm = two_ranks(
        model,
        remote_url=url,
        remote_timeout_s=ENOUGH_S,
        remote_share="ranks",
        remote_capacity_bytes=64 * MIB,
        remote_break_even=False,  # a tiny model computes as fast as a busy machine reads
    )
    eventually(lambda: _is_up(llm), "store in use")
    prompts = [prompt(length) for length in (100, 333, 700)]
    first = [answers(llm, [ids])[0] for ids in prompts]
    overwrite(llm)
    again = [answers(llm, [ids])[0] for ids in prompts]
    eventually(lambda: _figure(llm, _STORED) >= written_bytes, "prompts in the store")
    found = {
        "first": first,
        "again": again,
        "store_bytes": _figure(llm, _STORED),
        "load_bytes": _figure(llm, "vllm:kvtier_remote_load_bytes"),
    }
    Path(result).write_text(json.dumps(found), encoding="utf-8")


def _is_up(llm: "LLM") -> bool:
    answers(llm, [prompt(20)])  # figures come with a step
    return any(
        sample.name == "vllm:kvtier_remote_degraded" and not sample.value for sample in llm.get_metrics()
    )


def _figure(llm: "LLM", name: str) -> float:
    answers(llm, [prompt(20)])
    return metric(llm, name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
