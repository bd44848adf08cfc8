import pytest

from kvtier_operator.runtime.measure import Samples


def test_median_and_quartiles() -> None:
    samples = Samples.of([5.0, 1.0, 4.0, 2.0, 3.0])
    assert samples.median_s == 3.0
    assert samples.quartiles_s == (2.0, 4.0)
    assert samples.to_json()["samples_s"] == [5.0, 1.0, 4.0, 2.0, 3.0]


def test_one_sample_is_its_own_spread() -> None:
    assert Samples.of([2.0]).quartiles_s == (2.0, 2.0)


def test_no_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        Samples.of([])
