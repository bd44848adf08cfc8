"""Checks of LoRA adapters: adapters, adapter-keys, adapters-on-disk."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.adapters import adapter_keys, adapters, adapters_on_disk
from kvtier_operator.planning.checks.arguments import reserved_arguments

ONE = [{"name": "sql", "source": "org/sql"}]


def given(modules: list[dict[str, str]], *words: str, **spec: Any) -> KVCacheTier:  # noqa: ANN401 - as in YAML
    return resource(model_fields={"loraModules": modules}, engine={"extraArgs": [*words]}, **spec)


def test_room_for_adapters() -> None:
    says(verdict(adapters, resource()), PASS, "Passed", "no adapters")
    says(verdict(adapters, given(ONE)), PASS, "Passed", "room for 1 in a batch, 1 in memory, of rank 16")
    two = [*ONE, {"name": "law", "source": "/adapters/law"}]
    says(verdict(adapters, given(two)), WARN, "AdaptersTakeTurns", "2 adapters", "raise --max-loras")
    says(verdict(adapters, given(two, "--max-loras", "2")), PASS, "Passed")
    few = given(ONE, "--max-loras", "2", "--max-cpu-loras", "1")
    says(verdict(adapters, few), REJECT, "AdaptersDoNotFit", "--max-cpu-loras 1 is less than --max-loras 2")
    for none in ("0", "-1"):
        says(verdict(adapters, given(ONE, "--max-loras", none)), REJECT, "AdaptersDoNotFit", "less than 1")
        none_kept = verdict(adapters, given(ONE, "--max-cpu-loras", none))
        says(none_kept, REJECT, "AdaptersDoNotFit", f"{none} is less than --max-loras 1")
    unknown = given(ONE, model="own/model", geometry={"kvBytesPerToken": 1000})
    says(verdict(adapters, unknown), WARN, "AdaptersNotPlanned", "spec.model.weights")


def test_adapters_of_fields_share_keys_as_those_of_arguments_do() -> None:
    says(verdict(adapter_keys, given(ONE, backend="LMCache")), WARN, "AdaptersShareKeys")
    says(verdict(adapter_keys, given(ONE)), PASS, "Passed")


@pytest.mark.parametrize("word", ["--lora-modules", "--no-enable-lora"])
def test_what_the_field_makes_is_no_argument(word: str) -> None:
    says(verdict(reserved_arguments, given(ONE, word)), REJECT, "ReservedArgument", "spec.model.loraModules")
    says(verdict(reserved_arguments, given([], word)), PASS, "Passed")


CLAIM = {"persistentVolumeClaim": {"claimName": "kv"}}


def on_disk(backend: str, volume: dict[str, Any], *words: str) -> KVCacheTier:
    tiers = {"cpu": {"capacity": "100Gi"}, "disk": {"capacity": "1Ti", "volume": volume}}
    return given([], *words, backend=backend, tiers=tiers)


def test_what_adapters_compute_is_not_on_disk() -> None:
    one = on_disk("KVTier", CLAIM, "--enable-lora")
    says(verdict(adapters_on_disk, one), WARN, "AdaptersNotOnDisk", "4,194,176 tokens", "the CPU tier alone")
    says(verdict(adapters_on_disk, on_disk("KVTier", CLAIM)), PASS, "Passed", "no adapters")
    says(verdict(adapters_on_disk, given(ONE)), PASS, "Passed", "no adapters")


def test_a_disk_that_outlives_its_pod_has_what_replaced_adapters_computed() -> None:
    one = on_disk("Native", CLAIM, "--enable-lora")
    says(verdict(adapters_on_disk, one), WARN, "ReplacedAdaptersFound", "another name", "KVTier")
    for backend, volume in (("Native", {"emptyDir": {}}), ("LMCacheMP", CLAIM)):
        says(verdict(adapters_on_disk, on_disk(backend, volume, "--enable-lora")), PASS, "Passed")
