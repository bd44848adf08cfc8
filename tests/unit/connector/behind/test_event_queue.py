"""Who waits for any of an engine's tiers hears of each."""

import threading

from kvtier_connector.core.behind.event_queue import EventQueue


def test_what_is_told_between_two_queues_turns_is_heard_of() -> None:
    news = threading.Event()
    disk, store = EventQueue[str](news), EventQueue[str](news)
    disk.tell("first")
    assert disk.wait(0.0)
    assert disk.take() == ["first"]
    disk.tell("second")
    assert store.take() == []
    assert store.wait(0.0), "news of the disk is lost"
    assert disk.take() == ["second"]
    assert not disk.wait(0.0)
