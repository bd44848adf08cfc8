"""What is taken back when pods do not start with it: patiently, for longer each time, and not for ever."""

from dataclasses import replace

from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.status.withdrawal import (
    Withdrawal,
    next_withdrawal,
    patience_s,
    withdrawal_from_status,
)

WAITING = SelectedPod(
    "chat-0",
    created_at="2026-01-01T00:00:00Z",
    attached_to="chat",
    unschedulable="0/3",
    unschedulable_since="2026-01-01T00:00:00Z",
)
NOT_PULLED = SelectedPod(
    *("chat-0", "2026-01-01T00:00:00Z"),
    bound_at="2026-01-01T00:01:00Z",
    attached_to="chat",
    payload="ImagePullBackOff: no",
)
STARTED = SelectedPod("chat-0", "2026-01-01T00:00:00Z", attached_to="chat", engine_start="containerd://a")


def _first(pod: SelectedPod, now: str = "2026-01-01T00:10:00Z") -> Withdrawal:
    first = next_withdrawal([pod], None, now)
    assert first
    return first


def test_nodes_and_registries_may_be_away_for_five_minutes() -> None:
    assert next_withdrawal([WAITING], None, "2026-01-01T00:04:59Z") is None
    assert next_withdrawal([NOT_PULLED], None, "2026-01-01T00:05:59Z") is None
    assert (patience_s(NOT_PULLED, "2026-01-01T00:05:59Z"), patience_s(STARTED, "")) == (1, float("inf"))
    assert _first(WAITING, "2026-01-01T00:05:00Z").reason == "Unschedulable"
    told = _first(NOT_PULLED, "2026-01-01T00:06:00Z")
    assert (told.reason, told.retry_at) == ("PayloadNotPulled", "2026-01-01T00:16:00Z")
    refusal = told.refusal("2026-01-01T00:15:59Z")
    assert refusal
    assert refusal.message == (
        "pod chat-0 was given the tier, and its payload does not come: ImagePullBackOff: no; those "
        "that are made from now on are left as they are: delete it; the tier is tried again at "
        "2026-01-01T00:16:00Z, or with another spec"
    )


def test_it_is_tried_again_and_stays_away_twice_as_long_each_time() -> None:
    told = _first(WAITING)
    pauses_min = []
    for _ in range(8):
        assert withdrawal_from_status({"withdrawn": told.status}) == told
        assert next_withdrawal([], told, "2026-01-01T00:11:00Z") == told, "its pod was deleted meanwhile"
        retried = next_withdrawal([], told, told.retry_at)
        assert retried == told
        assert retried.refusal(told.retry_at) is None
        again = next_withdrawal([WAITING], told, told.retry_at)
        assert again
        pauses_min.append(again.wait_s(told.retry_at) / 60)
        told = again
    assert pauses_min == [20, 40, 80, 160, 320, 360, 360, 360]


def test_what_starts_after_all_has_it_published_again() -> None:
    told = _first(NOT_PULLED)
    now = "2026-01-01T00:11:00Z"
    assert next_withdrawal([replace(NOT_PULLED, payload="")], told, now) == told, "it is pulled once more"
    assert next_withdrawal([replace(STARTED, name="chat-1")], told, now) == told, "one from before"
    without = replace(STARTED, payload="the API server took its volume out")
    assert next_withdrawal([without], told, now) == told, "an engine starts without one too"
    assert next_withdrawal([STARTED], told, now) is None
    later = replace(STARTED, name="chat-2", created_at="2026-01-01T00:21:00Z")
    assert next_withdrawal([later], told, "2026-01-01T00:30:00Z") is None
