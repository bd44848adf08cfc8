from dataclasses import dataclass, replace

from kvtier_scorer.config.model import FrozenMap


@dataclass(frozen=True)
class _Given:
    weights: FrozenMap[str, int]


def test_what_holds_equal_maps_is_one_key() -> None:
    one, other = FrozenMap({"a": 1, "b": 2}), FrozenMap({"b": 2, "a": 1})
    assert (one, hash(one)) == (other, hash(other))
    known = {_Given(one): "found"}
    assert known[_Given(other)] == "found"
    assert replace(_Given(one), weights=one | {"b": 3}) not in known
    assert one == {"a": 1, "b": 2}


def test_the_order_is_the_given_one_and_what_was_given_may_change() -> None:
    given = {"b": 2, "a": 1}
    frozen = FrozenMap(given)
    given["c"] = 3
    assert list(frozen) == ["b", "a"]
    assert list(frozen | {"c": 3, "b": 0}) == ["b", "a", "c"]
    assert repr(frozen) == "FrozenMap({'b': 2, 'a': 1})"
