"""Which changes of conditions deserve an Event."""

from dataclasses import replace

from tests.unit.operator.reconcile.status.statuses import FULL, READY

from kvtier_operator.reconcile.apply.writer import transitions
from kvtier_operator.reconcile.status.build import StatusInput, build_status
from kvtier_operator.reconcile.status.router import UnservedKinds


def _told(before: StatusInput | None, after: StatusInput) -> list[tuple[str, str]]:
    old = build_status(before, {})["conditions"] if before else []
    return [
        (transition["type"], transition["status"])
        for transition in transitions(old, build_status(after, {})["conditions"])
    ]


def test_coming_up_is_no_event_and_being_ready_is_one() -> None:
    rising = replace(FULL, engine=replace(READY, ready_replicas=1))
    assert _told(None, rising) == [("NodesFit", "False")]
    assert _told(rising, rising) == []
    assert _told(rising, replace(rising, engine=replace(READY, ready_replicas=0))) == []
    assert _told(rising, FULL) == [("Ready", "True")]
    assert _told(FULL, rising) == [("EnginesReady", "False")]


def test_what_was_wrong_and_is_right_again_is_an_event() -> None:
    missing = replace(FULL, kinds=UnservedKinds(missing_crds=("a.x",)))
    assert _told(FULL, missing) == [("RouterReady", "False")]
    assert _told(missing, FULL) == [("RouterReady", "True"), ("Ready", "True")]
