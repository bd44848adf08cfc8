"""When a pod is asked for tokens again after it failed."""

from kvtier_scorer.picker.engines.tokenization.breaker import Breaker


class Turning:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_waiting_doubles_up_to_a_minute_and_one_request_tries_each_time() -> None:
    clock = Turning()
    breaker = Breaker(clock)
    for _ in range(3):
        assert breaker.may_ask("a")
        breaker.failed("a")
    assert breaker.open == 1
    waits = []
    for _ in range(8):
        before = clock.now_s
        while not breaker.may_ask("a"):
            clock.now_s += 0.5
        assert not breaker.may_ask("a")
        waits.append(clock.now_s - before)
        breaker.failed("a")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert breaker.may_ask("b")


def test_those_that_were_asked_together_count_as_one_trouble() -> None:
    clock = Turning()
    breaker = Breaker(clock)
    for _ in range(100):
        breaker.failed("a")
    assert breaker.open == 1
    clock.now_s = 1.0
    assert breaker.open == 0
    assert breaker.may_ask("a")
    breaker.answered("a")
    assert (breaker.open, breaker.may_ask("a"), breaker.may_ask("a")) == (0, True, True)


def test_pods_without_end_are_not_all_remembered() -> None:
    breaker = Breaker(Turning())
    for pod in range(5000):
        for _ in range(3):
            breaker.failed(str(pod))
    assert breaker.open == 4096
