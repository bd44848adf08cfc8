"""Whether the parser of `vllm serve` takes the words of spec.engine.extraArgs."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD
from kvtier_operator.planning.arguments.serve_options import MINORS, serve_options
from kvtier_operator.planning.arguments.serve_words import Fault, faults_of
from kvtier_operator.planning.base.vllm_minor import vllm_minor
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("known-arguments", FIELD)
_REASON: Final = "ArgumentNotKnown"


def known_arguments(given: CheckInput) -> CheckResult:
    """An engine ends at once, with its usage, at a word that its minor does not take.

    An image of somebody's own may have a fork or a plugin that takes more.
    """
    words, image = given.spec.engine.extra_args, given.spec.engine.image
    if not words:
        return _VERDICTS.passed("no arguments of the resource's own")
    minor = vllm_minor(image)
    minors = (minor,) if minor in MINORS else MINORS
    found = {each: [*faults_of(words, serve_options(each))] for each in minors}
    refusing = {each: faults for each, faults in found.items() if faults}
    if not refusing:
        return _VERDICTS.passed("vLLM's parser takes them")
    if len(refusing) == len(found):
        refusing = _common(refusing) or refusing
        if image is None or minor is not None:
            return _VERDICTS.reject_each(_REASON, [*_messages(refusing).items()])
    (field, first), *others = _messages(refusing).items()
    message = "; ".join((first, *(f"{place}: {each}" for place, each in others)))
    return _VERDICTS.warn(_REASON, message, field=field, by_itself="passes them on as they are written")


def _common(refusing: dict[int, list[Fault]]) -> dict[int, list[Fault]]:
    """What every minor refuses, in the words of the newest, of no minor in particular; empty if nothing."""
    positions = set.intersection(*({fault.position for fault in faults} for faults in refusing.values()))
    newest = refusing[max(refusing)]
    common = [fault for fault in newest if fault.position in positions]
    return {0: common} if common else {}


def _messages(refusing: dict[int, list[Fault]]) -> dict[str, str]:
    """Path and message of each, with the minor where it is one's alone."""
    return {
        f"{FIELD}[{fault.position}]": f"in vLLM 0.{minor}, {fault.message}" if minor else fault.message
        for minor, faults in refusing.items()
        for fault in faults
    }
