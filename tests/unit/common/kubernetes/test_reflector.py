"""How many failures in a row there were, which says how long to wait."""

import pytest

from kvtier_common.kubernetes.reflector import failures_after


@pytest.mark.parametrize(
    ("failed", "answered", "lasted_s", "failures"),
    [
        (False, True, 290.0, 0),
        (False, False, 290.0, 0),
        (False, True, 0.1, 4),
        (True, True, 290.0, 1),
        (True, False, 100.0, 4),
        (True, True, 0.1, 4),
    ],
    ids=["ended", "ended without news", "ended at once", "broke", "never said a word", "broke at once"],
)
def test_failures_in_a_row(failed: bool, answered: bool, lasted_s: float, failures: int) -> None:
    assert failures_after(3, failed=failed, answered=answered, lasted_s=lasted_s) == failures
