"""How long the demo's prompts are: as long as they say most, where a machine is done with them in time."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.runtime.demo.workload.pace import Pace

MOST_DOCUMENT_TOKENS: Final = 15_500
MOST_SYSTEM_TOKENS: Final = 1_500
_FEWEST_DOCUMENT_TOKENS: Final = 2_000
_FEWEST_SYSTEM_TOKENS: Final = 500
# Of the whole time, what a prompt may take to compute: the first act computes at least five, the second
# forty, and engines that start, stop and answer from caches take about half.
_OF_A_DOCUMENT: Final = 1 / 22
_OF_A_SYSTEM_PROMPT: Final = 1 / 160


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of prompts.

    Attributes:
        document_tokens: Of the first act's.
        system_tokens: Of the second act's system prompts, at most a document's.
        note: Why they are shorter than by default, in one sentence; empty where they are not.
    """

    document_tokens: int
    system_tokens: int
    note: str = ""

    def with_documents(self, tokens: int) -> "Lengths":
        """The same with documents as long as somebody asked for."""
        system = min(self.system_tokens, tokens)
        note = (
            f"For this machine to be done in time, system prompts have {system:,} tokens "
            f"(by default {MOST_SYSTEM_TOKENS:,})."
        )
        return Lengths(tokens, system, note if system < min(tokens, MOST_SYSTEM_TOKENS) else "")


def default_lengths(why: str) -> Lengths:
    """Lengths for a machine whose pace is not known.

    Args:
        why: it is not, for people.
    """
    note = f"Prompts are as long as on a fast machine, whatever time that takes: {why}."
    return Lengths(MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS, note)


def fitting_lengths(pace: Pace, within_s: float) -> Lengths:
    """The longest prompts, up to the defaults, that a machine is done with.

    Args:
        pace: How fast it computes.
        within_s: The demo's whole time.
    """
    documents = pace.fitting_tokens(
        within_s * _OF_A_DOCUMENT, fewest=_FEWEST_DOCUMENT_TOKENS, most=MOST_DOCUMENT_TOKENS
    )
    system = pace.fitting_tokens(
        within_s * _OF_A_SYSTEM_PROMPT, fewest=_FEWEST_SYSTEM_TOKENS, most=MOST_SYSTEM_TOKENS, step=100
    )
    if (documents, system) == (MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS):
        return Lengths(documents, system)
    note = (
        f"This machine would compute {MOST_DOCUMENT_TOKENS:,} tokens in about "
        f"{pace.prompt_s(MOST_DOCUMENT_TOKENS):.0f} s, so documents have {documents:,} and system prompts "
        f"{system:,} (by default {MOST_SYSTEM_TOKENS:,}): the longer the prefix, the more a tier gains."
    )
    return Lengths(documents, system, note)
