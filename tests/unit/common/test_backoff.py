"""Waits that double stay within their bounds."""

import pytest

from kvtier_common.backoff import Backoff


@pytest.mark.parametrize("failures", [1, 5, 50, 5000])
def test_waits_are_bounded(failures: int) -> None:
    assert 0.1 < Backoff(first_s=0.2, longest_s=60).delay_s(failures) <= 60
    assert 3 < Backoff(first_s=5, longest_s=600).delay_s(failures) <= 600
