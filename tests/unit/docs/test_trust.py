"""Each field that names or reaches something else stands in the tables of trust, with what it reaches."""

from collections.abc import Iterator

from tests.unit.docs.pages import DOCS, quoted_words, rows

from kvtier_operator.api.schema.crd import Schema, crd


def _free(node: Schema, path: str) -> Iterator[str]:
    """Fields that take more than a number or one of some words."""
    if node.get("x-kubernetes-int-or-string") or "enum" in node:
        return
    if "items" in node:
        yield from _free(node["items"], f"{path}[]")
    elif node["type"] == "object":
        if "properties" not in node:
            yield path
        for name, field in node.get("properties", {}).items():
            yield from _free(field, f"{path}.{name}")
    elif node["type"] == "string":
        yield path


def test_every_field_that_reaches_something_is_told_of() -> None:
    schema = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    free = {*_free(schema, "spec")}
    listed = {
        word
        for row in rows(DOCS / "operations" / "rbac.md", "## Trust")
        for word in quoted_words(row[0])
        if word.startswith("spec.")
    }
    assert len(free) > 40
    assert {each for each in free if not any(_is_below(each, field) for field in listed)} == set()
    assert {field for field in listed if not any(_is_below(each, field) for each in free)} == set()


def _is_below(field: str, other: str) -> bool:
    return field == other or field.startswith((f"{other}.", f"{other}["))
