"""Health endpoints of Kubernetes' programs."""

import ssl
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.harness.control_plane.certificates import KeyPair


def answers_ok(url: str, authority: Path | None = None, user: KeyPair | None = None) -> bool:
    """Whether an endpoint answers 200 now; over TLS its certificate must be the authority's."""
    context = ssl.create_default_context(cafile=authority) if authority else None
    if context and user:
        context.load_cert_chain(user.certificate, user.key)
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:  # noqa: S310 - our own server
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
