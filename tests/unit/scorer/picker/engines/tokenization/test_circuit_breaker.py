"""When a pod is asked for tokens again after it failed."""

from kvtier_scorer.picker.engines.tokenizers import CircuitBreaker


class Turning:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_waiting_doubles_up_to_a_minute_and_one_request_tries_each_time() -> None:
    clock = Turning()
    breaker = CircuitBreaker(clock)
    for _ in range(3):
        assert breaker.try_acquire("a")
        breaker.on_failure("a")
    assert breaker.open_count == 1
    waits = []
    for _ in range(8):
        before = clock.now_s
        while not breaker.try_acquire("a"):
            clock.now_s += 0.5
        assert not breaker.try_acquire("a")
        waits.append(clock.now_s - before)
        breaker.on_failure("a")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert breaker.try_acquire("b")


def test_those_that_were_asked_together_count_as_one_trouble() -> None:
    clock = Turning()
    breaker = CircuitBreaker(clock)
    for _ in range(100):
        breaker.on_failure("a")
    assert breaker.open_count == 1
    clock.now_s = 1.0
    assert breaker.open_count == 0
    assert breaker.try_acquire("a")
    breaker.on_success("a")
    assert (breaker.open_count, breaker.try_acquire("a"), breaker.try_acquire("a")) == (0, True, True)


def test_pods_without_end_are_not_all_remembered() -> None:
    breaker = CircuitBreaker(Turning())
    for pod in range(5000):
        for _ in range(3):
            breaker.on_failure(str(pod))
    assert breaker.open_count == 4096
