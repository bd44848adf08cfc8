"""A growth rests beside steps so that they have their time, and works on when there are none."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.region.pace import AT_REST_S, Pace, Steps

SHARE = 0.02


class Scene:
    """A clock that goes on while a growth rests; `turn` is what the engine does meanwhile."""

    def __init__(self, turn: Callable[["Scene"], None] = lambda _: None, *, ranks: int = 1) -> None:
        self.now_s = 0.0
        self.steps = Steps()
        self.turn = turn
        self.pace = Pace(self.steps, ranks=ranks, clock=lambda: self.now_s)
        self.pace._stopping.wait = self.wait  # type: ignore[method-assign, assignment]

    def wait(self, timeout_s: float) -> None:
        self.now_s += timeout_s + 1e-9  # a sleep is never shorter
        self.turn(self)

    def rested_s(self, worked_s: float, *, least_s: float = 0.0) -> float:
        begun_s = self.now_s
        assert self.pace.rest(worked_s, SHARE, least_s=least_s)
        return self.now_s - begun_s


def step(scene: Scene) -> None:
    scene.steps.begun += 1
    scene.steps.ended += 1


@given(st.lists(st.floats(1e-4, 0.05), min_size=1, max_size=20), st.integers(1, 8))
def test_beside_steps_all_ranks_together_take_their_share(works_s: list[float], ranks: int) -> None:
    scene = Scene(step, ranks=ranks)
    rested_s = sum(scene.rested_s(worked_s) for worked_s in works_s)
    of_all_s = sum(works_s) * ranks
    assert of_all_s / (of_all_s + rested_s) == pytest.approx(SHARE)


def test_a_long_step_is_not_a_rest() -> None:
    scene = Scene()
    scene.steps.begun += 1
    assert scene.rested_s(0.1) == pytest.approx(0.1 * (1 / SHARE - 1))


def test_an_engine_at_rest_leaves_all_of_the_time() -> None:
    scene = Scene()
    assert AT_REST_S <= scene.rested_s(1.0) < 2 * AT_REST_S  # seen at the end of a look
    assert scene.rested_s(1.0) == 0.0
    assert scene.rested_s(1.0, least_s=0.25) == pytest.approx(0.25)


def test_the_first_step_after_a_rest_ends_it() -> None:
    scene = Scene()
    scene.rested_s(1.0)
    scene.steps.begun += 1
    assert scene.rested_s(0.001) == pytest.approx(0.049)
    scene.steps.ended += 1
    assert scene.rested_s(0.001) == pytest.approx(0.049)  # it has just ended
    assert scene.rested_s(1.0) < AT_REST_S


def test_it_stops_while_it_rests() -> None:
    scene = Scene(lambda scene: scene.pace.stop())
    scene.steps.begun += 1
    assert not scene.pace.rest(1.0, SHARE)
    assert scene.now_s < AT_REST_S
    assert not scene.pace.rest(0.0, SHARE)
