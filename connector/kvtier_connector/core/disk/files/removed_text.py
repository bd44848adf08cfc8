"""What it costs that a folder was of an engine with another fingerprint, such as of another vLLM minor."""

from typing import Final

from kvtier_connector.core.disk.files.strangers import Removed
from kvtier_connector.core.machine.memory import format_bytes

_SIZES: Final = ("KV cache", "chunk")
"""Facts with which a chunk has other tokens."""


def removed_text(removed: Removed, chunk_tokens: int) -> str:
    """Return in a line what was removed, why, and how long it takes to compute it again.

    Args:
        removed: what an engine had left.
        chunk_tokens: tokens of a chunk now.
    """
    return (
        f"disk tier: removed what an engine of another fingerprint had left in {removed.path}: "
        f"{_held(removed, chunk_tokens)}{format_bytes(removed.taken_bytes)}; {_differences(removed)}"
    )


def _held(removed: Removed, chunk_tokens: int) -> str:
    if removed.blocks is None:
        return ""
    if not removed.changes or any(name in removed.changes for name in _SIZES):
        return f"{removed.blocks} chunks, "
    tokens, token_s = removed.blocks * chunk_tokens, removed.rates.token_s
    again = "" if token_s is None else f", {tokens * token_s:.0f} s or more to compute again"
    return f"{removed.blocks} chunks with {tokens} tokens{again}, "


def _differences(removed: Removed) -> str:
    if not removed.changes:
        return "nothing says how it differs"
    changes = (f"{name} ({change})" if change else name for name, change in removed.changes.items())
    return f"it differs in {', '.join(changes)}"
