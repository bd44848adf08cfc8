"""Who is looked at again when a KVCacheTier begins to select pods, selects others, or goes."""

from kvtier_operator.reconcile.cache.attach_selectors import AttachSelectors
from kvtier_operator.reconcile.cache.resources import Key

ONE, TWO = Key("team", "one"), Key("team", "two")


def _selecting(**labels: str) -> dict[str, object]:
    return {"spec": {"attach": {"podSelector": {"matchLabels": labels}}}}


def test_rivals_before_and_after_are_looked_at() -> None:
    selectors = AttachSelectors()
    assert selectors.upsert(ONE, _selecting(app="chat")) == set()
    assert selectors.upsert(Key("other", "two"), _selecting(app="chat")) == set()
    assert selectors.upsert(TWO, _selecting(app="chat", role="prefill")) == {ONE}
    assert [rival.name for rival in selectors.rivals(ONE)] == ["two"]
    assert selectors.upsert(TWO, _selecting(app="chat", role="prefill")) == set(), "nothing new"
    assert selectors.upsert(TWO, _selecting(app="long")) == {ONE}
    assert [*selectors.rivals(ONE)] == []
    assert selectors.upsert(TWO, _selecting(app="chat")) == {ONE}
    assert selectors.upsert(TWO, {"spec": {}}) == {ONE}
    selectors.upsert(TWO, _selecting(app="chat"))
    assert selectors.delete(TWO) == {ONE}
    assert [*selectors.rivals(ONE)] == []
