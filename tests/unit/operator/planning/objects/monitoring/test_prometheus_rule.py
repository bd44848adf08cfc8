import pytest
from tests.cases.monitoring import alerts, expressions, metrics_of

BACKENDS = ("KVTier", "Native", "LMCache", "LMCacheMP")
ALWAYS = {"KVCacheTierPickerDown", "KVCacheTierHitRateCollapsed"}
ENGINES = {"KVCacheTierNoEngine", "KVCacheTierEnginesMissing"}
VLLM = {"KVCacheTierLoadsSlowerThanPrefill"}
KVTIER = {"KVCacheTierTransfersFailing", "KVCacheTierSmallerThanPlanned"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flavor", ["llm-d", "gaie", "builtin"])
def test_prometheus_takes_every_expression(backend: str, flavor: str) -> None:
    for expression in expressions(backend=backend, router={"flavor": flavor}):
        assert metrics_of(expression)


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("KVTier", ALWAYS | ENGINES | VLLM | KVTIER),
        ("Native", ALWAYS | ENGINES | VLLM),
        ("LMCache", ALWAYS | ENGINES),
        ("LMCacheMP", ALWAYS | ENGINES),
    ],
)
def test_alerts_are_those_that_the_backend_has_metrics_for(backend: str, expected: set[str]) -> None:
    assert set(alerts(backend=backend)) == expected


def test_a_resource_without_engines_misses_none() -> None:
    assert not ENGINES & set(alerts(replicas=0))


def test_alerts_know_the_plan() -> None:
    found = alerts(replicas=3)
    assert found["KVCacheTierEnginesMissing"]["expr"].endswith("== 1) < 3")
    assert found["KVCacheTierSmallerThanPlanned"]["expr"].endswith("< 0.95 * 107374182400")


def test_alerts_name_the_resource_and_say_what_to_look_at() -> None:
    for alert in alerts().values():
        assert alert["labels"]["kvcachetier"] == "case"
        assert alert["labels"]["severity"] in {"warning", "critical"}
        assert alert["annotations"]["summary"].startswith("KVCacheTier default/case: ")
        assert alert["annotations"]["description"].endswith(".")
