from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.gateway import gateway_memory

FIELD = "spec.router.gateway.standalone.resources.limits.memory"


def of(limit: str, **router: str) -> KVCacheTier:
    standalone = {"resources": {"limits": {"memory": limit}}}
    return resource(router={"gateway": {"provider": "standalone", "standalone": standalone}, **router})


def test_it_has_memory_for_bodies_unless_somebody_says_less() -> None:
    says(verdict(gateway_memory, resource()), PASS, "Passed", "runs no gateway")
    alone = resource(router={"gateway": {"provider": "standalone"}, "flavor": "llm-d"})
    says(verdict(gateway_memory, alone), PASS, "Passed", "1Gi; bodies go through it in parts")
    # 90 % are 90 MiB: three times 8 MiB beside Envoy itself
    says(verdict(gateway_memory, of("100Mi", flavor="builtin")), PASS, "Passed", "8.67 MiB")


def test_one_that_refuses_the_largest_bodies_is_said() -> None:
    result = verdict(gateway_memory, of("90Mi", flavor="builtin"))
    says(
        result,
        WARN,
        "GatewayMemoryShort",
        "90Mi leaves a heap of 81 MiB",
        "88 MiB with one body of 8 MiB",
    )
    assert result.field == FIELD
    large = verdict(gateway_memory, of("143Mi", flavor="builtin", maxBodySize="256Mi"))
    says(large, WARN, "GatewayMemoryShort", "832 MiB with one body of 256 MiB")
    # others' pickers get it in parts
    says(verdict(gateway_memory, of("100Mi", flavor="llm-d")), PASS, "Passed")


def test_one_that_takes_no_request_is_refused() -> None:
    for limit, heap in (("0", "0 B"), ("64Mi", "57.60 MiB")):
        result = verdict(gateway_memory, of(limit))
        expected = f"{limit} leaves a heap of {heap}, and Envoy takes some 64 MiB by itself: raise it"
        says(result, REJECT, "GatewayMemoryShort", expected)
        assert result.field == FIELD
