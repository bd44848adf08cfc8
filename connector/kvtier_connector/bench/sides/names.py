"""What is compared on a GPU, by name; imports nothing, for the operator reads it."""

from typing import Final

NONE: Final = "none"
VLLM: Final = "vllm"
KVTIER: Final = "kvtier"
SIDES: Final = (NONE, VLLM, KVTIER)
TITLES: Final = {NONE: "no tier", VLLM: "vLLM's OffloadingConnector", KVTIER: "kvtier"}
COMPARED_PARTS: Final = ("ttft", "workloads")
"""The parts of `kvtier bench connector` that compare them."""
TURNS: Final = 2
"""Engines of each side, where nobody says how many."""
