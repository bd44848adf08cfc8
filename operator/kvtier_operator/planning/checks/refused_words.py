"""Words of spec.engine.extraArgs that vLLM refuses: one check tells of them, and others leave them to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvtier_operator.planning.arguments.serve_options import Fault, faults_of, serve_options
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.base.vllm_minor import possible_minors
from kvtier_operator.planning.checks.check import CheckInput


@dataclass(frozen=True, slots=True)
class RefusedWords:
    """What is wrong with words, by the minor that refuses them."""

    by_minor: Mapping[int, Sequence[Fault]]  # 0 for what every minor refuses
    is_certain: bool  # whether the engine's image is sure to have one of these minors, and all refuse

    @property
    def positions(self) -> frozenset[int]:
        """Items that are sure to be refused."""
        return frozenset(fault.position for fault in self._certain)

    @property
    def ambiguous(self) -> frozenset[int]:
        """Of them, those that are the beginning of several options."""
        return frozenset(fault.position for fault in self._certain if fault.names)

    @property
    def _certain(self) -> list[Fault]:
        return [fault for faults in self.by_minor.values() for fault in faults if self.is_certain]


def refused_words(parts: CheckInput) -> RefusedWords:
    """Every word that a minor which the engine may have does not take."""
    words, image = parts.spec.engine.extra_args.words, parts.spec.engine.image
    if not words:
        return RefusedWords({}, is_certain=True)
    minor = engine_minor(parts.spec, parts.observed)
    minors = possible_minors(minor)
    by_minor = {minor: [*faults_of(words, serve_options(minor))] for minor in minors}
    refusing = {minor: faults for minor, faults in by_minor.items() if faults}
    if len(refusing) < len(by_minor):
        return RefusedWords(refusing, is_certain=False)
    return RefusedWords(_common(refusing) or refusing, is_certain=image is None or minor is not None)


def _common(refusing: dict[int, list[Fault]]) -> dict[int, list[Fault]]:
    """What every minor refuses, in the words of the newest, of no minor in particular; empty if nothing."""
    positions = set.intersection(*({fault.position for fault in faults} for faults in refusing.values()))
    newest = refusing[max(refusing)]
    common = [fault for fault in newest if fault.position in positions]
    return {0: common} if common else {}
