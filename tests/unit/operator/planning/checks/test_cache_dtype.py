from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_dtype import cache_dtype

FLOAT32 = ["--dtype", "float32"]


def test_float32_into_a_bfloat16_cache_on_the_cpu() -> None:
    one = resource(engine={"device": "cpu", "kvCacheDtype": "bfloat16", "extraArgs": FLOAT32})
    result = verdict(cache_dtype, one)
    says(result, REJECT, "CacheDtypeNotSupported", "set kvCacheDtype to auto")
    assert result.field == "spec.engine.kvCacheDtype"


def test_the_cache_follows_the_model() -> None:
    says(verdict(cache_dtype, resource(engine={"device": "cpu", "extraArgs": FLOAT32})), PASS, "Passed")
    says(verdict(cache_dtype, resource(engine={"kvCacheDtype": "bfloat16"})), PASS, "Passed")
