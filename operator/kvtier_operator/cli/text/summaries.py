"""What each command is for, in a line: lists of them are shown without importing what any of them needs."""

from typing import Final

SUMMARIES: Final = {
    "kvtier.commands": {
        "plan": "Size the tiers of a KVCacheTier and say how each number came about.",
        "render": "Print the Kubernetes objects of KVCacheTiers.",
        "doctor": "Check that an engine can start here.",
        "run": "Serve a KVCacheTier on this machine.",
        "demo": "Serve long prompts with and without the tiers.",
        "bench": "Measure TTFT, throughput and the connector.",
        "picker": "Choose the engine of each request of a gateway.",
        "simulate": "Replay a request trace against simulated pods.",
    },
    "kvtier.bench": {
        "connector": "The connector's parts beside vLLM, LMCache and fio.",
        "job": "Print a Kubernetes Job that measures on a node.",
        "query-twice": "Time to first token, cold and from a cache.",
        "shared-prefix": "Questions about shared system prompts.",
        "offline": "Generate from long prompts twice, without a server.",
    },
}
"""By group of entry points."""
