"""What the picker's metrics say of the pods that are not asked."""

from dataclasses import replace

from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.observability.collector import metrics_snapshot
from kvtier_scorer.picker.observability.counters import PickerCounters
from kvtier_scorer.scheduling.pods import PodTable


def test_pods_that_are_not_asked_for_tokens_are_told() -> None:
    now = replace(metrics_snapshot(PickerCounters(), PodTable(PrefixIndex()), 0, {}, 0), skipped_pods=3)
    told = {sample.name: sample.value for family in now.collect() for sample in family.samples}
    assert told["kvtier_picker_tokenize_pods_left_alone"] == 3
