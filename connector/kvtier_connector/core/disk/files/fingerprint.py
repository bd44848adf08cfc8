"""What KV bytes mean: blocks of one fingerprint may be loaded by an engine of the same, and by no other."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import xxhash

_FORMAT: Final = 1
"""Of the bytes in a slot. Another number makes every block on disk a stranger's."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Names a namespace of the disk tier.

    Attributes:
        text: every fact on a line, for people and to compare with.
        number: its checksum, which goes into every checksum of the namespace.
    """

    text: str
    number: int

    @property
    def folder(self) -> str:
        """The name of the namespace's folder."""
        return f"{self.number:016x}"


def fingerprint(facts: Mapping[str, object]) -> Fingerprint:
    """Return the fingerprint of all that decides what a block's bytes mean.

    Args:
        facts: such as the weights' revision, dtypes, layout and ranks; of JSON's types, in any order.

    Raises:
        TypeError: a fact is not of JSON's types, so that its text might not be the same next time.
    """
    known = {"format": _FORMAT, **facts}
    lines = (f"{json.dumps(name)}: {json.dumps(known[name], sort_keys=True)}" for name in sorted(known))
    text = "\n".join(lines) + "\n"
    return Fingerprint(text, xxhash.xxh3_64_intdigest(text.encode()))
