"""How long a spec may be: the operator keeps all of a cluster's in memory."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.errors import Problem

MOST_SPEC_BYTES: Final = 64 << 10
"""As JSON, with defaults."""


def spec_size(spec: Spec) -> int:
    """Bytes of a spec as the API server has it."""
    return len(spec.model_dump_json(by_alias=True, exclude_none=True).encode())


def too_long(spec_bytes: int) -> Problem:
    """What is wrong with one of that size."""
    return Problem(
        "spec",
        f"{spec_bytes:,} bytes as JSON, {MOST_SPEC_BYTES:,} at most: shorten its lists; values of engine.env can come "
        "from a ConfigMap (valueFrom)",
    )
