"""The store of resources: which news is news."""

from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, planned, stored

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.reconcile.cache.resources import Key, Tiers, key_of


def test_a_resource_that_went_before_its_statuss_answer_came_does_not_come_back() -> None:
    tiers, key = Tiers(), key_of(stored())
    tiers.seen(stored(version=1))
    tiers.gone(key, UID)
    tiers.written(stored(version=2))
    assert tiers.get(key) is None


def test_an_answer_about_one_that_was_there_before_is_old() -> None:
    tiers, key = Tiers(), key_of(stored())
    new, old = stored(version=5), stored(version=4)
    old["metadata"]["uid"] = "old"
    tiers.seen(new)
    tiers.written(old)
    assert tiers.seen(old) is None
    tier = tiers.get(key)
    assert tier
    assert tier.uid == UID


def test_one_made_anew_remembers_nothing() -> None:
    tiers, key = Tiers(), key_of(stored())
    tiers.seen(stored(version=1))
    tier = tiers.get(key)
    assert tier
    tier.memory.complete = True
    new = stored(version=3)
    new["metadata"]["uid"] = "new"
    tiers.seen(new)
    tier = tiers.get(key)
    assert tier
    assert not tier.memory.complete


def _numbered(namespace: str, number: int, *, version: int = 1) -> dict[str, Any]:
    one = stored(version=version)
    return one | {
        "metadata": one["metadata"]
        | {"namespace": namespace, "name": f"tier-{number}", "uid": f"{namespace}{number}"}
    }


def test_a_namespace_takes_no_more_than_its_room_and_others_have_theirs() -> None:
    tiers = Tiers()
    for number in range(2000):
        tiers.seen(_numbered("crowd", number))
    kept = [key for key in tiers if (tier := tiers.get(key)) and not tier.refusal]
    assert 1000 <= len(kept) < 1500
    last = tiers.get(Key("crowd", "tier-1999"))
    assert last
    assert "namespace crowd have no room left in the 64 MiB" in last.refusal
    tiers.seen(_numbered("quiet", 0))
    quiet = tiers.get(Key("quiet", "tier-0"))
    assert quiet
    assert not quiet.refusal


def test_all_together_take_no_more_than_theirs() -> None:
    tiers = Tiers()
    for number in range(1000):
        for namespace in ("a", "b", "c"):
            tiers.seen(_numbered(namespace, number))
    refused = [tier.refusal for key in tiers if (tier := tiers.get(key)) and tier.refusal]
    assert 200 < len(refused) < 600
    assert all("all KVCacheTiers of the cluster" in each for each in refused)


def test_one_that_had_no_room_is_taken_when_it_is_listed_again_and_others_went() -> None:
    tiers, key = Tiers(), Key("crowd", "tier-1999")
    for number in range(2000):
        tiers.seen(_numbered("crowd", number))
    again = _numbered("crowd", 1999)
    assert tiers.seen(again) is None
    for number in range(2):
        tiers.gone(Key("crowd", f"tier-{number}"), f"crowd{number}")
    assert tiers.seen(again) == key
    tier = tiers.get(key)
    assert tier
    assert not tier.refusal
    assert b'"spec":{' in tier.spec


def test_one_that_is_kept_stays_kept_when_its_status_grows() -> None:
    tiers = Tiers()
    for number in range(2000):
        tiers.seen(_numbered("crowd", number))
    grown = _numbered("crowd", 0, version=2) | {"status": {"selector": "x" * 100_000}}
    assert tiers.seen(grown) == Key("crowd", "tier-0")
    tier = tiers.get(Key("crowd", "tier-0"))
    assert tier
    assert not tier.refusal


def test_a_spec_that_is_too_long_is_not_kept_and_told_as_beforehand() -> None:
    changes: dict[str, object] = {"spec.engine.extraArgs": [f"--x={'x' * 4_000}"] * 120}
    tiers = Tiers()
    key = tiers.seen(stored(changes))
    assert key
    tier = tiers.get(key)
    assert tier
    assert len(tier.spec) < 1000
    said = planned(changes)[0].accepted
    with pytest.raises(InvalidInputError) as refused:
        parse_resource(stored(changes), "cr.yaml")
    (problem,) = refused.value.problems
    assert said.reason == "Invalid"
    what, _, rest = str(problem).partition(" bytes as JSON, 65,536 at most")
    assert what.startswith("spec: ")
    assert rest
    assert f" bytes as JSON, 65,536 at most{rest}" in said.message


def test_whether_it_is_ready_is_read_once() -> None:
    tiers, key = Tiers(), key_of(stored())
    for version, status in enumerate(("True", "False"), start=1):
        document = stored(version=version)
        document["status"] = {"conditions": [{"type": "Accepted"}, {"type": "Ready", "status": status}]}
        tiers.seen(document)
        tier = tiers.get(key)
        assert tier
        assert tier.ready == status
    tiers.seen(stored(version=3))
    tier = tiers.get(key)
    assert tier
    assert tier.ready == "Unknown"
