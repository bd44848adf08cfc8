from collections.abc import Iterator
from functools import cache

import pytest

from kvtier_operator.api.schema import reference
from kvtier_operator.api.schema.crd import openapi_schema
from kvtier_operator.api.schema.reference import FieldExplained, explain_field
from kvtier_operator.errors import InvalidInputError

_CPU = "spec.tiers.cpu"


@cache
def everything() -> tuple[FieldExplained, ...]:
    """Every field, each explained by its path, of a schema that is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "openapi_schema", cache(openapi_schema))
        return tuple(_below(""))


def _below(path: str) -> Iterator[FieldExplained]:
    field = explain_field(path)
    yield field
    for each in field.fields:
        yield from _below(each.path)


def test_every_field_is_found_by_its_path_and_described() -> None:
    found = everything()
    assert len(found) > 100
    assert [each.path for each in found if not each.description] == []
    assert {"spec.engine.env[].name", "status.conditions[].reason"} <= {each.path for each in found}


def test_all_below_a_field_at_once() -> None:
    def paths(field: FieldExplained) -> Iterator[str]:
        yield field.path
        for part in field.fields:
            yield from paths(part)

    assert [*paths(explain_field("", recursive=True))] == [each.path for each in everything()]


@pytest.mark.parametrize(
    "path",
    [
        *("spec.tiers.cpu", "kvct.spec.tiers.cpu", "KVCacheTier.spec.tiers.cpu"),
        *("kvcachetiers.spec.tiers.cpu", ".spec.tiers.cpu"),
    ],
)
def test_a_path_as_kubectl_explain_takes_it(path: str) -> None:
    field = explain_field(path)
    assert (field.path, field.type, field.required) == ("spec.tiers.cpu", "object", True)
    capacity, *_ = field.fields
    assert (capacity.path, capacity.type, capacity.required) == ("spec.tiers.cpu.capacity", "quantity", True)


@pytest.mark.parametrize(
    "path", ["spec.engine.env.name", "spec.engine.env[].name", "spec.engine.env[0].name"]
)
def test_a_field_of_a_list_s_items(path: str) -> None:
    assert explain_field(path).path == "spec.engine.env[].name"


@pytest.mark.parametrize(
    ("end", "path"),
    [
        ("attach", "spec.attach"),
        ("cpu.capacity", "spec.tiers.cpu.capacity"),
        ("engine.env.name", "spec.engine.env[].name"),
    ],
)
def test_the_end_of_a_path_that_no_other_has(end: str, path: str) -> None:
    assert explain_field(end).path == path


def test_default_bounds_and_rules() -> None:
    replicas = explain_field("spec.replicas")
    assert (replicas.type, replicas.default, replicas.bounds) == ("integer", 1, "0 to 10,000.")
    pages = explain_field("spec.tiers.cpu.hugepages")
    assert pages.default == {"policy": "Never"}
    assert pages.rules == ("pageSize needs a policy: set hugepages.policy to Require or Prefer",)
    assert explain_field("spec.tiers.cpu.hugepages.policy").type == "Require | Prefer | Never"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("spec.tiers.cpu.capacty", "spec.tiers.cpu.capacty: unknown field; did you mean capacity?"),
        (
            "spec.tiers.gpu",
            (
                "spec.tiers.gpu: unknown field; the GPU's own cache is no tier of the resource: "
                "spec.engine.gpu or gpuMemory says how much memory the GPU has, spec.engine.kvCacheMemory "
                "sets the cache's size"
            ),
        ),
        ("spec.hugepages", "spec.hugepages: unknown field here; it belongs at spec.tiers.cpu.hugepages"),
        (
            "spec.replicas.most",
            "spec.replicas.most: unknown field: replicas of type integer has no fields that kvtier knows",
        ),
        (
            "spec.engine.env[].names",
            "spec.engine.env.names: unknown field; did you mean name?",
        ),
        (
            "policy",
            f"policy: several fields end so; write one of {_CPU}.hugepages.policy, {_CPU}.memlock.policy",
        ),
    ],
)
def test_an_unknown_field_in_one_line(path: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        explain_field(path)
    assert str(error.value) == said
