"""The store of resources: which news is news."""

from tests.unit.operator.reconcile.objects import UID, stored

from kvtier_operator.reconcile.tiers import Tiers, key_of


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
