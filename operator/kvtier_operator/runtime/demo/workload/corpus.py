"""A real English text that every CPython ships, so that the demo needs no download."""

from collections.abc import Sequence
from itertools import pairwise

from kvtier_operator.errors import RuntimeFailedError


def corpus() -> str:
    """The Python language reference as pydoc carries it: 460 kB or more of prose, in a fixed order."""
    from pydoc_data import topics  # noqa: PLC0415 - 0.5 MB of text, for the demo only

    return "\n\n".join(text.strip() for _, text in sorted(topics.topics.items()))


def documents(text: str, token_starts: Sequence[int], count: int, tokens_each: int) -> tuple[str, ...]:
    """Cut `count` disjoint documents of about `tokens_each` tokens from `text`, front to back.

    Args:
        text: The whole text.
        token_starts: Offset in characters at which each token of `text` starts.
        count: How many documents.
        tokens_each: Tokens in each; a document's own tokenization may differ by one at its edges.

    Raises:
        RuntimeFailedError: The text is too short.
    """
    needed = count * tokens_each
    if len(token_starts) < needed:
        raise RuntimeFailedError(
            f"the demo's text has {len(token_starts)} tokens with this tokenizer; "
            f"{count} documents of {tokens_each} need {needed}: ask for fewer tokens a document"
        )
    edges = [
        *token_starts[:needed:tokens_each],
        token_starts[needed] if len(token_starts) > needed else len(text),
    ]
    return tuple(text[start:end] for start, end in pairwise(edges))
