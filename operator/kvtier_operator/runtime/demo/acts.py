"""The demo's two acts, one after the other: a tier behind one engine, a picker before two."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.routing_act.result import RoutingResult
from kvtier_operator.runtime.demo.routing_act.run import RoutingQuestions, run_routing
from kvtier_operator.runtime.demo.tier_act.measure import Questions
from kvtier_operator.runtime.demo.tier_act.result import DemoResult
from kvtier_operator.runtime.demo.tier_act.run import Facts, run_demo
from kvtier_operator.runtime.demo.workload.lengths import Lengths

# Of the whole time: its four engines take longer to start than the first act's two.
_SECOND_ACT: Final = 1 / 2


@dataclass(frozen=True, slots=True)
class DemoPlans:
    """Plans of the two acts: `one` engine with a tier, and `two` engines with smaller caches."""

    one: Plan
    two: Plan


@dataclass(frozen=True, slots=True)
class DemoMeasurements:
    """Results of both acts, `tier` and `routing`, and facts about the machine."""

    tier: DemoResult
    routing: RoutingResult
    facts: Facts


@dataclass(frozen=True, slots=True)
class DemoQuestions:
    """What the engines are asked.

    Attributes:
        documents: Long texts, at least two, with no common beginning.
        lengths: Of documents and of the second act's system prompts.
        started_s: When the demo began (time.monotonic).
        until_s: When to be done.
    """

    documents: Sequence[str]
    lengths: Lengths
    started_s: float
    until_s: float

    @property
    def first_until_s(self) -> float:
        """When the first act has to be done."""
        return self.until_s - _SECOND_ACT * (self.until_s - self.started_s)


async def both_acts(
    plans: DemoPlans, model: Path, asked: DemoQuestions, logs: Path, console: PlainConsole
) -> DemoMeasurements:
    """Run both acts.

    Args:
        plans: What runs.
        model: Folder of the model.
        asked: What to ask.
        logs: Folder for logs.
        console: Is told of each step.

    Raises:
        RuntimeFailedError: An engine failed or did not do what the demo is about.
    """
    name = plans.one.resource.spec.model.names[0]
    first = Questions(name, asked.documents, asked.first_until_s)
    result, facts = await run_demo(plans.one, model, first, logs, console)
    share = asked.lengths.system_tokens / asked.lengths.document_tokens
    first_text, second_text, *_ = (text[: int(share * len(text))] for text in asked.documents)
    second = RoutingQuestions(asked.lengths.system_tokens, (first_text, second_text), asked.until_s)
    return DemoMeasurements(result, await run_routing(plans.two, model, second, logs, console), facts)
