"""A list of pods, and what is no such list."""

import pytest

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.pods.source import StaticPods


def test_addresses_are_taken_in_both_families() -> None:
    pods = StaticPods(["10.0.0.7:8000", " [FD00::7]:8001"])
    assert [each.address for each in pods._endpoints] == ["10.0.0.7:8000", "[fd00::7]:8001"]
    assert not pods.synced


@pytest.mark.parametrize(
    "addresses",
    [
        [],
        ["10.0.0.7"],
        ["10.0.0.7:"],
        ["10.0.0.7:http"],
        ["10.0.0.7:0"],
        ["10.0.0.7:65536"],
        ["vllm-0:8000"],
        ["fd00::7:8000"],
        [":8000"],
        ["http://10.0.0.7:8000"],
        ["10.0.0.7:8000", "10.0.0.7:8000"],
    ],
)
def test_what_is_no_address_is_refused_with_what_to_do(addresses: list[str]) -> None:
    with pytest.raises(PickerConfigError, match="pod"):
        StaticPods(addresses)
