"""What engines of other fingerprints left in a folder: looked at, then removed."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_connector.core.disk.files.directory import Directory
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, changed_facts
from kvtier_connector.core.disk.files.journal import count_blocks
from kvtier_connector.core.disk.files.namespace_files import (
    FACTS,
    is_namespace,
    names_a_namespace,
    rates_in,
)
from kvtier_connector.core.disk.worth.rates import Rates
from kvtier_connector.errors import SettingError, UnsafeFolderError

_MOST_FACTS_BYTES: Final = 4 << 20
_BLOCK_BYTES: Final = 512  # of st_blocks, whatever the file system's own


@dataclass(frozen=True, slots=True)
class Removed:
    """A namespace that was removed.

    Attributes:
        path: its folder.
        taken_bytes: what its files took of the disk.
        blocks: how many lay in it; None where its index cannot be read.
        changes: what tells its fingerprint from that of who removed it, as `changed_facts` has it.
        rates: what its engine had learnt.
    """

    path: Path
    taken_bytes: int
    blocks: int | None
    changes: dict[str, str]
    rates: Rates


def remove_strangers(tier: Directory, own: Fingerprint) -> tuple[Removed, ...]:
    """Remove all namespaces but one's own; what others put there stays.

    Raises:
        OSError: the folder cannot be read or written.
    """
    removed = []
    for name in tier.names():
        if name != own.folder and names_a_namespace(name) and (found := _look(tier, name, own)):
            with suppress(FileNotFoundError):
                tier.remove_folder(name)
            removed.append(found)
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
            sum(folder.look(each).st_blocks * _BLOCK_BYTES for each in folder.names()),
            blocks,
            changed_facts(facts, own.text),
            rates_in(folder),
        )
    finally:
        folder.close()
