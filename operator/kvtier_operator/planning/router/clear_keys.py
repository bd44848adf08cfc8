"""Where clients' API keys are sent in the clear."""

from kvtier_operator.api.resource import Spec


def clear_key_notes(spec: Spec) -> tuple[str, ...]:
    """A line where kvtier's own gateway asks for keys over HTTP: TLS that ends before it may be wanted."""
    standalone = spec.router.standalone
    if standalone is None or standalone.api_keys is None or standalone.tls_secret_name:
        return ()
    note = (
        "the gateway takes API keys over HTTP: who can read traffic in the cluster, or to its Service, reads "
        "them, even if TLS ends before it; set spec.router.gateway.standalone.tlsSecretName"
    )
    return (note,)
