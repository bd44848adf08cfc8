"""A condition's message, whatever others wrote into it."""

from kvtier_operator.reconcile.apply.writer import event
from kvtier_operator.reconcile.facts.cached_plan import false_condition, with_transition_time


def test_a_message_is_one_line_that_the_api_takes() -> None:
    foreign = "a\x1b[31m\nb\x9b\u202e" + "x" * 100_000
    condition = with_transition_time(false_condition("Accepted", "Invalid", foreign), [], 1, "now")
    metadata = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}
    for message, most in ((condition["message"], 5000), (event(condition, metadata, "now")["message"], 1024)):
        assert "a?[31m b??xxx" in message
        assert message.isprintable()
        assert len(message) <= most
