"""What the demo's second act asks of two engines; numbers only.

The shape is the high-cache workload of llm-d's guide to a tiered prefix cache, small enough for two cores:
questions about system prompts, mixed at random, of which the device caches hold only some at a time.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from kvtier_common.benchmarks import Workload

ENGINES: Final = 2
# More than both device caches hold (`setup.py`), or the tier would have nothing to do.
_GROUPS: Final = 6
_MOST: Final = 10
_FEWEST: Final = 3
# Of a prompt's time, what one takes whose system prompt is found: its question, its answer, its loading.
_FOUND: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingLoad(Workload):
    """What all three ways are asked."""

    groups: int = _GROUPS
    prompts_per_group: int = _MOST
    system_tokens: int = 1_500
    question_tokens: int = 32
    output_tokens: int = 8
    concurrency: int = 2 * ENGINES

    @property
    def computed(self) -> float:
        """What all three ways take, in the time of one computed prompt.

        With the tier off every prompt may be computed; in turns every system prompt once on each engine; with
        the picker once.
        """
        computed = self.groups * (self.prompts_per_group + ENGINES + 1)
        return computed + _FOUND * (3 * self.requests - computed)

    def arguments(self) -> tuple[str, ...]:
        """The same for `kvtier bench shared-prefix`."""
        return (
            *("--num-groups", str(self.groups)),
            *("--prompts-per-group", str(self.prompts_per_group)),
            *("--system-prompt-len", str(self.system_tokens)),
            *("--question-len", str(self.question_tokens)),
            *("--output-len", str(self.output_tokens)),
            *("--concurrency", str(self.concurrency)),
        )

    def to_json(self) -> dict[str, Any]:
        """Every size by its name."""
        return asdict(self)


def fitting_load(system_tokens: int, prompt_s: float, left_s: float) -> RoutingLoad:
    """As many questions about each system prompt as fit, three to ten.

    Args:
        system_tokens: Length of a system prompt.
        prompt_s: What a computed prompt takes of the whole machine.
        left_s: Seconds left for all three ways.
    """
    loads = [
        RoutingLoad(prompts_per_group=prompts, system_tokens=system_tokens)
        for prompts in range(_FEWEST, _MOST + 1)
    ]
    fitting = [load for load in loads if load.computed * prompt_s <= left_s]
    return fitting[-1] if fitting else loads[0]
