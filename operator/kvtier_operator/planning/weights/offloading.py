"""Weights that vLLM keeps in the host's memory: how many of a rank's, and by which option.

Source: vllm/config/offload.py and vllm/model_executor/offloader/base.py (create_offloader), 0.32 and 0.33.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.units import GIB

BACKEND: Final = "--offload-backend"
PREFETCH: Final = "prefetch"
OFFLOADED_GIB: Final = "--cpu-offload-gb"
GROUP_SIZE: Final = "--offload-group-size"
IN_GROUP: Final = "--offload-num-in-group"
PREFETCH_STEP: Final = "--offload-prefetch-step"
_AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class Offloading:
    """What a rank keeps in the host's memory: so many bytes, or a share of its weights."""

    option: str  # that says how much
    asked_bytes: int | None = None  # no more than these; None where it is a share
    share: Fraction = Fraction(1)  # of all weights, by layers

    def moved_bytes(self, weights_bytes: int | None) -> int:
        """Of weights of so many bytes in a rank; None where nothing tells them."""
        if self.asked_bytes is None:
            return int((weights_bytes or 0) * self.share)
        return self.asked_bytes if weights_bytes is None else min(self.asked_bytes, weights_bytes)


def offloading(line: CommandLine) -> Offloading | None:
    """What these arguments ask for; None where all weights stay on the device."""
    group = group_layers(line)
    if prefetches(line):
        share = min(Fraction(1), Fraction(in_group(line), group)) if group else Fraction(0)
        return Offloading(GROUP_SIZE, share=share) if share > 0 else None
    asked_bytes = int((line.amount(OFFLOADED_GIB) or 0) * GIB)
    return Offloading(OFFLOADED_GIB, asked_bytes) if asked_bytes else None


def prefetches(line: CommandLine) -> bool:
    """Whether whole layers are moved, a part of each group of them."""
    backend = _backend(line)
    return backend == PREFETCH or (backend == _AUTO and group_layers(line) > 0)


def group_layers(line: CommandLine) -> int:
    """Layers of a group; 0 where there are no groups."""
    return max(0, line.number(GROUP_SIZE) or 0)


def in_group(line: CommandLine) -> int:
    """Of them those in the host's memory."""
    return max(1, line.number(IN_GROUP) or 1)


def _backend(line: CommandLine) -> str:
    return line.value(BACKEND) or _AUTO
