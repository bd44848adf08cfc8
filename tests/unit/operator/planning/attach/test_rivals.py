"""KVCacheTiers that may select the same pods: who gets nothing, and who keeps the rest."""

from kvtier_operator.planning.attach.rivals import Rival, left_without, may_share_pods, shared_with

CHAT = {"app": "chat"}
PREFILL = {"app": "chat", "role": "prefill"}


def test_selectors_that_contradict_each_other_share_no_pod() -> None:
    assert may_share_pods(CHAT, PREFILL)
    assert may_share_pods(CHAT, {"team": "llm"})
    assert not may_share_pods(PREFILL, {"app": "chat", "role": "decode"})


def test_who_selects_no_pod_alone_gives_none() -> None:
    whole, part = Rival("whole", CHAT), Rival("part", PREFILL)
    assert left_without(PREFILL, (), [whole]) == (
        "KVCacheTier whole selects all of its pods too, which get the tier of none: have the "
        "spec.attach.podSelector of one alone select them"
    )
    assert left_without(CHAT, (), [part]) == ""
    assert "some of its pods" in shared_with(CHAT, [part])
    assert left_without(CHAT, (), [part] * 17).startswith("17 KVCacheTiers beside this one")


def test_pods_that_are_there_tell_of_selectors_that_say_nothing() -> None:
    other = Rival("other", {"team": "llm"})
    assert (left_without(CHAT, ["one", "two"], [other]), shared_with(CHAT, [other])) == ("", "")
    seen = Rival("other", {"team": "llm"}, frozenset({"one", "two"}))
    assert shared_with(CHAT, [seen]).startswith("KVCacheTier other selects pod one and 1 pod more too, ")
    assert left_without(CHAT, ["one", "two", "three"], [seen]) == ""
    assert left_without(CHAT, ["one", "two"], [seen]).startswith("KVCacheTier other selects all of its pods")
