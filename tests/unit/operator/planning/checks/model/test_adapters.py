"""Checks of what a model is called and of its adapters: adapters, adapter-keys, served-names."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.checks.arguments import reserved_arguments
from kvtier_operator.planning.checks.model import served_names
from kvtier_operator.planning.checks.weights import adapter_keys, adapters

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


def test_names() -> None:
    says(verdict(served_names, resource()), PASS, "Passed", "Qwen/Qwen3-32B")
    says(
        verdict(served_names, resource(model_fields={"servedNames": ["chat"]})),
        PASS,
        "Passed",
        "ask for chat",
    )
    two = {"servedNames": ["chat", "gpt"]}
    says(verdict(served_names, resource(model_fields=two)), WARN, "NamesCountedApart", "a model of its own")
    router = {"flavor": "builtin", "kvEvents": True}
    told = verdict(served_names, resource(model_fields=two, router=router))
    says(told, WARN, "NamesCountedApart", "by chat alone")


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"servedNames": ["-x"]}, "servedNames[0]", "is no name of a model"),
        ({"servedNames": ["a", "a"]}, "servedNames[1]", "there twice"),
        ({"loraModules": [{"name": "a=b", "source": "x/y"}]}, "loraModules[0].name", "is no name of a model"),
        ({"loraModules": [{"name": "a", "source": "x y"}]}, "loraModules[0].source", "is no adapter"),
        ({"loraModules": [{"name": "a"}]}, "loraModules[0].source", "is required"),
        (
            {"loraModules": [{"name": "Qwen/Qwen3-32B", "source": "x/y"}]},
            "loraModules",
            "the name of the model",
        ),
        (
            {"servedNames": ["chat"], "loraModules": [{"name": "chat", "source": "x"}]},
            "loraModules",
            "name of the",
        ),
    ],
)
def test_what_is_no_name(fields: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resource(model_fields=fields)
    [problem] = refused.value.problems
    assert problem.field == f"spec.model.{where}"
    assert words in problem.message
