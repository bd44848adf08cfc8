from typing import Any

from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.gateway import other_models

OTHER = {"name": "Qwen/Qwen3-8B", "resource": "qwen3-8b"}


def of(*models: dict[str, Any]) -> KVCacheTier:
    return resource(router={"gateway": {"provider": "standalone", "standalone": {"models": [*models]}}})


def test_models_of_others_are_theirs() -> None:
    says(verdict(other_models, resource()), PASS, "Passed", "no other model")
    says(verdict(other_models, of(OTHER)), PASS, "Passed", "1 of other resources")


def test_what_is_served_here_does_not_go_on() -> None:
    own = of()
    name, model = own.metadata.name, own.spec.model.name
    result = verdict(
        other_models, of(OTHER, {"name": model, "resource": "x"}, {"name": "y", "resource": name})
    )
    says(
        result,
        REJECT,
        "ModelServedHere",
        f"{model} is served here, by this resource",
        f"{name} is this resource",
    )
    assert result.field == "spec.router.gateway.standalone.models[1].name"
    assert "models[2].resource" in result.message


def test_other_names_and_adapters_are_served_here_too() -> None:
    gateway = {"provider": "standalone", "standalone": {"models": [{"name": "sql", "resource": "x"}]}}
    for model in ({"servedNames": ["chat", "sql"]}, {"loraModules": [{"name": "sql", "source": "a/b"}]}):
        one = resource(model_source=model, router={"gateway": gateway})
        says(verdict(other_models, one), REJECT, "ModelServedHere", "sql is served here")
