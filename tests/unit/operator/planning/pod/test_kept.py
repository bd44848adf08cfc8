"""What engines are given to keep what matters."""

import json
from typing import Any

import pytest
from tests.cases.planning import plan_sizes, resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

TEXT = {"name": "tools", "text": "You have these tools.", "retain": "30m"}
NUMBERS = {"name": "numbers", "tokens": [1, 2, 3]}
FROM_MAP = {"name": "policy", "fromConfigMap": {"name": "prompts", "key": "policy.chat"}}
DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


def objects(one: KVCacheTier) -> dict[tuple[str, str], Any]:
    built = build_objects(make_plan(one, Observed()))
    return {(each["kind"], each["metadata"]["name"]): each for each in built}


def engine_pod(one: KVCacheTier) -> dict[str, Any]:
    template: dict[str, Any] = objects(one)["Deployment", "case-engine"]["spec"]["template"]
    return template


def settings(one: KVCacheTier) -> dict[str, Any]:
    [container] = engine_pod(one)["spec"]["containers"]
    args = container["args"]
    config: dict[str, Any] = json.loads(args[args.index("--kv-transfer-config") + 1])
    read: dict[str, Any] = config["kv_connector_extra_config"]
    return read


def test_each_prefix_is_a_file_that_the_engine_finds() -> None:
    one = resource(prefixes=[TEXT, NUMBERS, FROM_MAP])
    files = {
        name: json.loads(text) for name, text in objects(one)["ConfigMap", "case-prefixes"]["data"].items()
    }
    assert files == {
        "tools.json": {"name": "tools", "retain_s": 1800, "text": TEXT["text"]},
        "numbers.json": {"name": "numbers", "retain_s": 3600, "tokens": [1, 2, 3]},
    }
    pod = engine_pod(one)["spec"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "prefixes"]
    [own, theirs] = [source["configMap"] for source in volume["projected"]["sources"]]
    assert own == {"name": "case-prefixes"}
    assert theirs == {"name": "prompts", "items": [{"key": "policy.chat", "path": "policy.json"}]}
    [container] = pod["containers"]
    [folder] = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "prefixes"]
    assert {"name": "KVTIER_PREFIXES", "value": folder} in container["env"]


def test_prefixes_of_config_maps_alone_need_none_of_ours() -> None:
    one = resource(prefixes=[FROM_MAP])
    assert ("ConfigMap", "case-prefixes") not in objects(one)
    [volume] = [each for each in engine_pod(one)["spec"]["volumes"] if each["name"] == "prefixes"]
    assert [source["configMap"]["name"] for source in volume["projected"]["sources"]] == ["prompts"]


def test_engines_are_replaced_when_a_prefix_changes() -> None:
    """They read prefixes when they start."""
    other = engine_pod(resource(prefixes=[{**TEXT, "text": "Other tools."}]))
    assert engine_pod(resource(prefixes=[TEXT]))["metadata"] != other["metadata"]


def test_a_start_has_the_time_that_prefixes_and_a_warm_start_may_take() -> None:
    def startup_s(**spec: Any) -> int:  # noqa: ANN401 - fields of the spec
        return plan_sizes(resource(**spec))[1].startup_s

    assert startup_s(prefixes=[TEXT]) - startup_s() == 120
    assert startup_s(prefixes=[TEXT], prefixesWithin="10s") - startup_s() == 10
    warm = startup_s(tiers=DISK, engine={"rollout": {"warmStart": "60s"}})
    assert warm - startup_s(tiers=DISK, engine={"rollout": {"warmStart": "0s"}}) == 60


def test_a_start_is_warm_only_where_something_outlives_it() -> None:
    assert "warm_start_s" not in settings(resource())
    assert settings(resource(tiers=DISK))["warm_start_s"] == 10
    assert "warm_start_s" not in settings(resource(tiers=DISK, engine={"rollout": {"warmStart": "0s"}}))


def test_ones_own_middleware_stays_beside_ours() -> None:
    own = resource(prefixes=[TEXT], engine={"extraArgs": ["--middleware", "team.audit.Audit"]})
    [container] = engine_pod(own)["spec"]["containers"]
    args = container["args"]
    given = [args[at + 1] for at, word in enumerate(args) if word == "--middleware"]
    assert given == ["kvtier_connector.serve.middleware.KVTierMiddleware", "team.audit.Audit"]


@pytest.mark.parametrize("backend", ["Native", "LMCache", "LMCacheMP"])
def test_other_backends_have_none_of_it(backend: str) -> None:
    [container] = engine_pod(resource(backend=backend))["spec"]["containers"]
    assert "--middleware" not in container["args"]
    assert not [each for each in container["env"] if each["name"].startswith("KVTIER_")]
    assert not [each for each in container["volumeMounts"] if each["name"] == "control"]


def test_without_prefixes_and_hints_nothing_stands_before_the_api() -> None:
    router = {"flavor": "builtin", "hints": "Refuse"}
    [container] = engine_pod(resource(router=router))["spec"]["containers"]
    assert "--middleware" not in container["args"]
    [container] = engine_pod(resource(router=router, prefixes=[TEXT]))["spec"]["containers"]
    assert "--middleware" in container["args"]


def test_parts_of_tiers_and_tenants_reach_the_connector() -> None:
    tiers = {
        "cpu": {"capacity": "100Gi", "retained": {"most": "45%"}},
        "disk": {**DISK["disk"], "retained": {"most": "0%"}},
    }
    tenants = [{"name": "search", "guaranteed": "20%", "most": "50%"}, {"name": "chat"}]
    given = settings(resource(tiers=tiers, tenants=tenants))
    assert (given["cpu_retained_share"], given["disk_retained_share"]) == (0.45, 0.0)
    assert given["tenants"] == {
        "search": {"guaranteed": 0.2, "most": 0.5},
        "chat": {"guaranteed": 0.0, "most": 1.0},
    }
