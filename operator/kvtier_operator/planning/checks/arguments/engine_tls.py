"""Who can ask engines that serve HTTPS."""

from typing import Final

from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.api.spec.tiers import one_of
from kvtier_operator.planning.arguments.engine_tls import CERTIFICATE, serves_tls
from kvtier_operator.planning.arguments.extra_args import FIELD, field_path_of, value_of
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("engine-tls", FIELD)
_KEY: Final = "--ssl-keyfile"
_CLIENTS: Final = "--ssl-cert-reqs"
_REQUIRED: Final = "2"  # ssl.CERT_REQUIRED


def engine_tls(given: CheckInput) -> CheckResult:
    """The kubelet's probes, pickers and Prometheus show no certificate, and ask pods by their addresses."""
    engine = given.spec.engine
    if not serves_tls(engine):
        if value_of(engine.extra_args, _KEY):
            return _VERDICTS.reject(
                "CertificateMissing",
                f"{_KEY} without {CERTIFICATE}: vLLM ends at start; give both, or none",
                field=field_path_of(engine.extra_args, _KEY),
            )
        return _VERDICTS.passed("the engines serve HTTP")
    place = field_path_of(engine.extra_args, CERTIFICATE)
    if value_of(engine.extra_args, _CLIENTS) == _REQUIRED:
        return _VERDICTS.reject(
            "ClientCertificateRequired",
            f"{_CLIENTS} {_REQUIRED}: probes have no client certificate, so no engine would ever "
            "be ready; remove it, or give 1",
            field=field_path_of(engine.extra_args, _CLIENTS),
        )
    if given.observed.machine is not None:
        return _VERDICTS.reject(
            "EngineServesTLS",
            f"{CERTIFICATE}: a local run asks its engines over HTTP; remove it",
            field=place,
        )
    if given.picker.tls_args is None:
        others = one_of(each for each in Flavor if flavor_traits(each).tls_args is not None)
        return _VERDICTS.reject(
            "EngineServesTLS",
            f"{CERTIFICATE}: {given.picker.title} reads the engines' load over HTTP; remove it, or set "
            f"spec.router.flavor to {others}",
            field=place,
        )
    gateway = given.spec.router.gateway
    told = "; a BackendTLSPolicy of yours must tell the Gateway" if gateway and gateway.parent_ref else ""
    return _VERDICTS.warn(
        "EngineServesTLS",
        "the engines serve HTTPS: probes, picker and monitors follow by themselves, without verifying the "
        f"certificate; the status keeps planned sizes, for the operator reads engines over HTTP{told}",
        field=place,
    )
