"""What is fuzzed, one target a file: `run` raises on what must not happen, `SEEDS` are examples.

A new target is one file and one line here: its name, and the modules whose branches guide the fuzzer.
"""

from typing import Final

TARGETS: Final = {
    "bodies": ("kvtier_scorer.picker.gateway.bodies",),
    "metrics": ("kvtier_scorer.picker.engines.engine_metrics",),
    "kv_events": ("kvtier_scorer.picker.engines.kv_events.payload",),
    "kv_events_wire": ("kvtier_scorer.picker.engines.kv_events",),
    "formats": ("kvtier_common.formats", "yaml"),
    "picker_settings": ("kvtier_scorer.config", "kvtier_common.formats", "yaml"),
    "resource": (
        "kvtier_operator.api",
        "kvtier_operator.planning",
        "kvtier_common.formats",
        "yaml",
    ),
}
