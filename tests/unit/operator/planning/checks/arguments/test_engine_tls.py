import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.arguments import engine_tls
from kvtier_operator.planning.observed import Machine, Observed

TLS = ["--ssl-certfile", "/tls/tls.crt", "--ssl-keyfile=/tls/tls.key"]


def test_engines_without_a_certificate() -> None:
    says(verdict(engine_tls, resource()), PASS, "Passed", "HTTP")


@pytest.mark.parametrize("flavor", ["llm-d", "gaie"])
def test_engines_with_a_certificate(flavor: str) -> None:
    router = {"flavor": flavor}
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}, router=router))
    says(result, WARN, "EngineServesTLS", "probes")
    assert "BackendTLSPolicy" not in result.message
    gateway = {"gateway": {"parentRef": {"name": "inference"}}}
    says(
        verdict(engine_tls, resource(engine={"extraArgs": TLS}, router=router | gateway)),
        WARN,
        "EngineServesTLS",
        "BackendTLSPolicy",
    )


def test_kvtier_s_own_picker_asks_over_http() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}, router={"flavor": "builtin"}))
    says(result, REJECT, "EngineServesTLS", "--ssl-certfile", "spec.router.flavor")
    assert result.field == "spec.engine.extraArgs[0]"


def test_a_local_run_asks_over_http() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}), Observed(machine=Machine()))
    says(result, REJECT, "EngineServesTLS", "local run")


@pytest.mark.parametrize("required", [["--ssl-cert-reqs", "2"], ["--ssl_cert_reqs=2"], ["--ssl-cert-r=2"]])
def test_probes_have_no_certificate_of_a_client(required: list[str]) -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": [*TLS, *required]}))
    says(result, REJECT, "ClientCertificateRequired", "probes")


def test_a_key_alone() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": ["--ssl-keyfile", "/tls/tls.key"]}))
    says(result, REJECT, "CertificateMissing", "--ssl-certfile")
