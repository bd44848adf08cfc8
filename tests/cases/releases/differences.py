"""In which fields objects differ, and which of that docs/operations/upgrades.md says."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.cases.releases.kept import Document, Key
from tests.unit.docs.pages import DOCS, quoted_words, rows

UPGRADES: Final = DOCS / "operations" / "upgrades.md"
_NOTHING: Final = object()
_POD: Final = "spec.template."
IMAGE: Final = "Image"
"""In place of an object's kind."""
_WRITTEN_BY_EACH: Final = ("metadata.annotations.kvtier.dev/applied-hash",)
"""Follows from all other fields."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A field that an upgrade changes, in objects of one component.

    Attributes:
        component: Whose object it is, such as `engine`.
        kind: The object's.
        field: Path of the field; members of a list have their name in brackets.
    """

    component: str
    kind: str
    field: str

    @property
    def restarts_engines(self) -> bool:
        """Whether engines are replaced for it."""
        return (self.component, self.kind) == ("engine", "Deployment") and self.field.startswith(_POD)


def changed_images(before: Mapping[str, str], now: Mapping[str, str], older: Collection[str]) -> set[Change]:
    """Images of an earlier release whose sources have changed since, so that they would lack the change.

    Args:
        before: Checksums of what was in each image.
        now: Of what would be.
        older: Images that are an earlier release's.
    """
    return {Change(name, IMAGE, "contents") for name in older if before[name] != now[name]}


def documented_changes(version: str) -> set[Change]:
    """What the page says changes at the upgrade from a release.

    Raises:
        AssertionError: It has no such section.
    """
    heading = f"## From {version}"
    assert f"\n{heading}\n" in UPGRADES.read_text(encoding="utf-8"), f"{UPGRADES} has no section {heading!r}"
    return {Change(*(quoted_words(cell)[0] for cell in row[:3])) for row in rows(UPGRADES, heading)}


def changes(before: Mapping[Key, Document], now: Mapping[Key, Document]) -> set[Change]:
    """In which fields the objects of the same resources differ."""
    return {change for key in {*before, *now} for change in changes_of(key, before.get(key), now.get(key))}


def changes_of(key: Key, before: Document | None, now: Document | None) -> set[Change]:
    """In which fields one object differs; of one that is not there before or now, in all of it."""
    labels = (now or before or {})["metadata"]["labels"]
    component = labels["app.kubernetes.io/component"]
    if before is None or now is None:
        return {Change(component, key[0], "all")}
    return {
        Change(component, key[0], field)
        for field in differing_fields(before, now)
        if field not in _WRITTEN_BY_EACH
    }


def differing_fields(before: object, now: object, path: str = "") -> Iterator[str]:
    """Paths of the smallest parts that differ; a list without names counts as a whole."""
    if before == now:
        return
    old, new = _members(before), _members(now)
    if old is None or new is None:
        yield path
        return
    for name in sorted({*old, *new}):
        inner = name if name.startswith("[") or not path else f".{name}"
        yield from differing_fields(old.get(name, _NOTHING), new.get(name, _NOTHING), f"{path}{inner}")


def _members(value: object) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value):
        return {f"[{each['name']}]": each for each in value}
    return None
