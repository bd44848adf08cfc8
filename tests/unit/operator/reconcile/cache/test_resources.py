"""The cache of resources: what counts as a change, and what fits."""

from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, plan_objects, stored_resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.reconcile.cache.resources import Key, ResourceCache, key_of


def _ignored(_: Key) -> None:
    pass


def test_a_resource_that_went_before_its_statuss_answer_came_does_not_come_back() -> None:
    resources, key = ResourceCache(_ignored), key_of(stored_resource())
    resources.upsert(stored_resource(version=1))
    resources.delete(key, UID)
    resources.take_answer(stored_resource(version=2))
    assert resources.get(key) is None


def test_an_answer_about_one_that_was_there_before_is_old() -> None:
    resources, key = ResourceCache(_ignored), key_of(stored_resource())
    new, old = stored_resource(version=5), stored_resource(version=4)
    old["metadata"]["uid"] = "old"
    resources.upsert(new)
    resources.take_answer(old)
    resources.upsert(old)
    resource = resources.get(key)
    assert resource
    assert resource.uid == UID


def test_one_made_anew_remembers_nothing() -> None:
    resources, key = ResourceCache(_ignored), key_of(stored_resource())
    resources.upsert(stored_resource(version=1))
    resource = resources.get(key)
    assert resource
    resource.state.was_complete = True
    new = stored_resource(version=3)
    new["metadata"]["uid"] = "new"
    resources.upsert(new)
    resource = resources.get(key)
    assert resource
    assert not resource.state.was_complete


def _numbered(namespace: str, number: int, *, version: int = 1) -> dict[str, Any]:
    one = stored_resource(version=version)
    return one | {
        "metadata": one["metadata"]
        | {"namespace": namespace, "name": f"tier-{number}", "uid": f"{namespace}{number}"}
    }


def test_a_namespace_takes_no_more_than_its_room_and_others_have_theirs() -> None:
    resources = ResourceCache(_ignored)
    for number in range(2000):
        resources.upsert(_numbered("crowd", number))
    kept = [key for key in resources if (resource := resources.get(key)) and not resource.refusal]
    assert 1000 <= len(kept) < 1500
    last = resources.get(Key("crowd", "tier-1999"))
    assert last
    assert "namespace crowd have no room left in the 64 MiB" in last.refusal
    resources.upsert(_numbered("quiet", 0))
    quiet = resources.get(Key("quiet", "tier-0"))
    assert quiet
    assert not quiet.refusal


def test_all_together_take_no_more_than_theirs() -> None:
    resources = ResourceCache(_ignored)
    for number in range(1000):
        for namespace in ("a", "b", "c"):
            resources.upsert(_numbered(namespace, number))
    refused = [resource.refusal for key in resources if (resource := resources.get(key)) and resource.refusal]
    assert 200 < len(refused) < 600
    assert all("all KVCacheTiers of the cluster" in each for each in refused)


def test_one_that_had_no_room_is_taken_when_it_is_listed_again_and_others_went() -> None:
    changed: list[Key] = []
    resources, key = ResourceCache(changed.append), Key("crowd", "tier-1999")
    for number in range(2000):
        resources.upsert(_numbered("crowd", number))
    again = _numbered("crowd", 1999)
    changed.clear()
    resources.upsert(again)
    assert not changed
    for number in range(2):
        resources.delete(Key("crowd", f"tier-{number}"), f"crowd{number}")
    resources.upsert(again)
    assert changed == [key]
    resource = resources.get(key)
    assert resource
    assert not resource.refusal
    assert b'"spec":{' in resource.spec


def test_one_that_is_kept_stays_kept_when_its_status_grows() -> None:
    changed: list[Key] = []
    resources = ResourceCache(changed.append)
    for number in range(2000):
        resources.upsert(_numbered("crowd", number))
    changed.clear()
    grown = _numbered("crowd", 0, version=2) | {"status": {"selector": "x" * 100_000}}
    resources.upsert(grown)
    assert changed == [Key("crowd", "tier-0")]
    resource = resources.get(Key("crowd", "tier-0"))
    assert resource
    assert not resource.refusal


def test_a_spec_that_is_too_long_is_not_kept_and_told_as_beforehand() -> None:
    changes: dict[str, object] = {"spec.engine.extraArgs": [f"--x={'x' * 4_000}"] * 120}
    resources = ResourceCache(_ignored)
    resources.upsert(stored_resource(changes))
    resource = resources.get(key_of(stored_resource()))
    assert resource
    assert len(resource.spec) < 1000
    said = plan_objects(changes)[0].accepted
    with pytest.raises(InvalidInputError) as refused:
        parse_resource(stored_resource(changes), "cr.yaml")
    (problem,) = refused.value.problems
    assert said.reason == "Invalid"
    what, _, rest = str(problem).partition(" bytes as JSON, 65,536 at most")
    assert what.startswith("spec: ")
    assert rest
    assert f" bytes as JSON, 65,536 at most{rest}" in said.message


def test_whether_it_is_ready_is_read_once() -> None:
    resources, key = ResourceCache(_ignored), key_of(stored_resource())
    for version, status in enumerate(("True", "False"), start=1):
        document = stored_resource(version=version)
        document["status"] = {"conditions": [{"type": "Accepted"}, {"type": "Ready", "status": status}]}
        resources.upsert(document)
        resource = resources.get(key)
        assert resource
        assert resource.ready == status
    resources.upsert(stored_resource(version=3))
    resource = resources.get(key)
    assert resource
    assert resource.ready == "Unknown"
