"""Folders of a namespace each in the tier's folder: what is in them, and what becomes of other engines'."""

import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_connector.core.behind.break_even import Rates
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, changed_facts
from kvtier_connector.core.disk.files.folder import Directory
from kvtier_connector.core.disk.files.journal import INDEX, count_blocks
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.errors import SettingError, UnsafeFolderError

FACTS: Final = "fingerprint"
RATES: Final = "rates"
_NAMESPACE: Final = re.compile(r"[0-9a-f]{16}")  # others give such names, too
_FILE: Final = re.compile(rf"({INDEX}|{RATES})(\.new)?|{FACTS}|blocks-\d{{6,}}")
_MOST_RATES_BYTES: Final = 4096
_MOST_FACTS_BYTES: Final = 4 << 20
_BLOCK_BYTES: Final = 512  # of st_blocks, whatever the file system's own
_SIZES: Final = ("KV cache", "chunk")  # facts with which a chunk has other tokens


def is_namespace(folder: Directory) -> bool:
    """Tell whether a folder holds what a namespace does and nothing else."""
    return all(_FILE.fullmatch(name) and stat.S_ISREG(folder.look(name).st_mode) for name in folder.names())


def rates_in(folder: Directory) -> Rates:
    """Return what an engine has kept there; of what cannot be read, nothing is known."""
    try:
        return Rates.parse(folder.read(RATES, _MOST_RATES_BYTES).decode())
    except (OSError, ValueError, UnsafeFolderError):
        return Rates()


@dataclass(frozen=True, slots=True)
class Removed:
    """A namespace that was removed."""

    path: Path  # its folder
    taken_bytes: int  # what its files took of the disk
    blocks: int | None  # how many lay in it; None where its index cannot be read
    # what tells its fingerprint from that of who removed it, as `changed_facts` has it
    changes: dict[str, str]
    rates: Rates  # what its engine had learnt


def remove_others(tier: Directory, own: Fingerprint) -> tuple[Removed, ...]:
    """Remove all namespaces but one's own; what others put there stays."""
    removed = []
    for name in tier.names():
        if name != own.folder and _NAMESPACE.fullmatch(name) and (other := _look(tier, name, own)):
            with suppress(FileNotFoundError):
                tier.remove_folder(name)
            removed.append(other)
    return tuple(removed)


def _look(tier: Directory, name: str, own: Fingerprint) -> Removed | None:
    """Return what is in a namespace; None for what is none."""
    try:
        folder = tier.folder(name, make=False)
    except (SettingError, UnsafeFolderError):
        return None
    try:
        if not is_namespace(folder):
            return None
        blocks, facts = None, ""
        with suppress(OSError, UnsafeFolderError):
            facts = folder.read(FACTS, _MOST_FACTS_BYTES).decode(errors="replace")
            blocks = count_blocks(folder)
        return Removed(
            folder.path,
            sum(folder.look(file).st_blocks * _BLOCK_BYTES for file in folder.names()),
            blocks,
            changed_facts(facts, own.text),
            rates_in(folder),
        )
    finally:
        folder.close()


def removed_text(removed: Removed, chunk_tokens: int) -> str:
    """Return in a line what was removed, why, and how long it takes to compute it again."""
    return (
        f"disk tier: removed what an engine of another fingerprint had left in {removed.path}: "
        f"{_content_text(removed, chunk_tokens)}{format_bytes(removed.taken_bytes)}; {_differences(removed)}"
    )


def _content_text(removed: Removed, chunk_tokens: int) -> str:
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
