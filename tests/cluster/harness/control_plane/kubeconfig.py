"""Kubeconfig files: one cluster, one user, nothing else."""

import base64
import json
from pathlib import Path
from typing import Final

from kubernetes import client
from tests.cluster.harness.control_plane.certificates import KeyPair

# A test's service account never needs a new token while it runs.
_TOKEN_S: Final = 6 * 3600


def kubeconfig_for_certificate(target: Path, url: str, authority: Path, user: KeyPair) -> Path:
    """Writes a kubeconfig for the bearer of a certificate, self-contained; returns the file."""
    certificate = {
        "client-certificate-data": _encode(user.certificate),
        "client-key-data": _encode(user.key),
    }
    return _write(target, url, authority, certificate)


def kubeconfig_for_token(target: Path, url: str, authority: Path, token: str, namespace: str) -> Path:
    """Writes a kubeconfig for the bearer of a token in a namespace, self-contained; returns the file."""
    return _write(target, url, authority, {"token": token}, {"namespace": namespace})


def service_account_token(api: client.ApiClient, namespace: str, name: str) -> str:
    """A new token of an existing service account, as a pod of it would have."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_S},
    }
    core = client.CoreV1Api(api)
    return str(core.create_namespaced_service_account_token(name, namespace, request).status.token)


def _write(
    target: Path, url: str, authority: Path, user: dict[str, str], place: dict[str, str] | None = None
) -> Path:
    name = "kvtier"
    cluster = {"server": url, "certificate-authority-data": _encode(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(place or {})}}],
        "current-context": name,
    }
    target.touch(mode=0o600)
    target.write_text(json.dumps(content, indent=1))  # JSON is YAML
    return target


def _encode(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
