"""What KV bytes mean, and whether they are as they were written: fingerprints and checksums."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import xxhash
from typing_extensions import Buffer

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object

_FORMAT: Final = 1  # of the bytes in a slot. Another number makes every block on disk another engine's.
_LONGEST_VALUE: Final = 40  # characters of a fact that are said; of a longer one only the name is
_LONGEST_NAME: Final = 40
_MOST_FACTS: Final = 64
"""No engine writes longer names, or more of them; a folder's own text goes into a line of the log."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Names a namespace of the disk tier."""

    text: str  # every fact on a line, for people and to compare with
    number: int  # its checksum, which goes into every checksum of the namespace

    @property
    def folder(self) -> str:
        """The name of the namespace's folder."""
        return f"{self.number:016x}"


def fingerprint(facts: Mapping[str, object]) -> Fingerprint:
    """Return the fingerprint of all that decides what a block's bytes mean.

    Facts are such as the weights' revision, dtypes, layout and ranks, in any order. Raises TypeError: one is
    not of JSON's types, so that its text might not be the same next time.
    """
    known = {"format": _FORMAT, **facts}
    lines = (f"{json.dumps(name)}: {json.dumps(known[name], sort_keys=True)}" for name in sorted(known))
    text = "\n".join(lines) + "\n"
    return Fingerprint(text, xxhash.xxh3_64_intdigest(text.encode()))


def changed_facts(before: str, now: str) -> dict[str, str]:
    """Return what tells two fingerprints apart: `"before" -> "now"` by a fact's name, `""` if that is long.

    Of a text before that was no fingerprint nothing is said.
    """
    old, new = _facts(before), _facts(now)
    if not old:
        return {}
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return {name: _change(old.get(name, "none"), new.get(name, "none")) for name in names}


def _facts(text: str) -> dict[str, str]:
    facts = dict[str, str]()
    for line in text.splitlines():
        try:
            parsed = parse_json_object(f"{{{line}}}")
        except MalformedError:
            continue
        for name, value in parsed.items():
            if name.isprintable() and len(name) <= _LONGEST_NAME and len(facts) < _MOST_FACTS:
                facts[name] = json.dumps(value, sort_keys=True)
    return facts


def _change(old: str, new: str) -> str:
    return "" if max(len(old), len(new)) > _LONGEST_VALUE else f"{old} -> {new}"


def bound_checksum(whole: int, part: bytes, *data: Buffer) -> int:
    """Return the checksum of data and of where they belong: what is undamaged is still refused elsewhere.

    They are a part of a whole, a block's namespace or a journal's nonce: a block's key, or a frame's place.
    """
    seed = bound_seed(whole, part)
    if len(data) == 1:
        return seeded_checksum(seed, data[0])
    pieces = xxhash.xxh3_64(seed=seed)
    for piece in data:
        pieces.update(piece)
    return pieces.intdigest()


def bound_seed(whole: int, part: bytes) -> int:
    """Return what binds a checksum to where its data belong, for who does not know that."""
    return xxhash.xxh3_64_intdigest(part, seed=whole)


def seeded_checksum(seed: int, data: Buffer) -> int:
    """Return the bound checksum of data in one piece."""
    return xxhash.xxh3_64_intdigest(data, seed=seed)
