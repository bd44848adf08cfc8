"""What benchmarks of connector, operator and scorer have in common: workloads, answers, figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, Final

from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.one_line import one_line

_DATA: Final = b"data:"
_DONE: Final = b"[DONE]"
_LONGEST_MESSAGE: Final = 500


# The shape is that of llm-d's guide to a tiered prefix cache (llm-d 0.4.0,
# guides/tiered-prefix-cache/cpu/README.md, appendix), which measured with inference-perf's shared_prefix.
@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Questions about system prompts; `concurrency` requests are under way at any time."""

    groups: int
    prompts_per_group: int
    system_tokens: int
    question_tokens: int
    output_tokens: int
    concurrency: int

    @property
    def requests(self) -> int:
        """Number of requests."""
        return self.groups * self.prompts_per_group

    @property
    def prompt_tokens(self) -> int:
        """Length of one prompt."""
        return self.system_tokens + self.question_tokens


HIGH_CACHE: Final = Workload(
    groups=45,
    prompts_per_group=10,
    system_tokens=30_000,
    question_tokens=256,
    output_tokens=1_024,
    concurrency=45,
)
"""The guide's "High Cache": system prompts fit the CPU tiers of 8 engines, and not their device caches."""

LOW_CACHE: Final = replace(HIGH_CACHE, system_tokens=8_000)
"""The guide's "Low Cache": its system prompts fit the device caches."""

WORKLOADS: Final[Mapping[str, Workload]] = {"high-cache": HIGH_CACHE, "low-cache": LOW_CACHE}
"""As command lines name them."""


class StreamedError(Exception):
    """The server says in its stream what went wrong; one line."""


def event_of(line: bytes) -> Mapping[str, Any] | None:
    """The event in a line; None for a line without one, and for the mark of the end.

    Raises StreamedError: it tells of an error; ValueError: it is no event.
    """
    if not line.startswith(_DATA) or (data := line.removeprefix(_DATA).strip()) == _DONE:
        return None
    event = parse_json_object(data)
    if "error" in event:
        raise StreamedError(error_message(data))
    return event


def text_of(event: Mapping[str, Any]) -> str:
    """The piece of text that an event brings; empty for none."""
    match event.get("choices"):
        case [{"text": str(text)}, *_] if text:
            return text
        case [{"delta": {"content": str(text)}}, *_]:
            return text
    return ""


def usage_of(event: Mapping[str, Any]) -> Mapping[str, int]:
    """What the server counted, as far as the event tells it, one level of names into the other."""
    usage = event.get("usage")
    fields = usage if isinstance(usage, dict) else {}
    details = fields.get("prompt_tokens_details")
    both = {**fields, **(details if isinstance(details, dict) else {})}
    return {name: value for name, value in both.items() if type(value) is int}


def error_message(body: bytes) -> str:
    """The message of an error as such servers wrap it, in one line."""
    text = body.decode(errors="replace")
    try:
        wrapped = parse_json_object(text)
        error = wrapped.get("error", wrapped)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except ValueError:
        pass
    return one_line(text, _LONGEST_MESSAGE)


def p90(values: Sequence[float]) -> float:
    """The smallest value that at least 90 % of them do not exceed (nearest rank)."""
    return sorted(values)[ceil(Fraction(9, 10) * len(values)) - 1]
