"""Where the API server is and who we are: the pod's service account, else KUBECONFIG."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.config.kube_config import KubeConfigMerger
from yaml import YAMLError

from kvtier_common.errors import PermanentError

_NO_KUBECONFIG: Final = (TypeError, AttributeError, LookupError, ValueError)
"""What the client raises for a kubeconfig of another shape than it takes it for: it does not look at it."""
_UNUSABLE: Final = (ConfigException, YAMLError, OSError, *_NO_KUBECONFIG)
_KUBECONFIG: Final = "~/.kube/config"
_IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class NoClusterError(PermanentError):
    """Neither a service account nor a usable kubeconfig."""


async def connection(context: str | None = None) -> Configuration:
    """The client's configuration, with credentials that renew themselves; NoClusterError says what to set."""
    configuration = Configuration()
    with translate_kubeconfig_errors():
        if _is_pod(context):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(_kubeconfig(), context=context, client_configuration=configuration)
    return configuration


def own_namespace(context: str | None = None) -> str:
    """The namespace where none is named: the context's, or the pod's own; NoClusterError says what to set."""
    with translate_kubeconfig_errors():
        if _is_pod(context):
            return _POD_NAMESPACE.read_text(encoding="utf-8").strip()
        config = KubeConfigMerger(_kubeconfig()).config
        settings = config["contexts"].get_with_name(context or config["current-context"])["context"]
    return str(settings.safe_get("namespace") or "default")


@contextmanager
def translate_kubeconfig_errors() -> Iterator[None]:
    """Around what takes a kubeconfig at its word.

    Raises NoClusterError: it holds something that nobody can use, such as a certificate that is none.
    """
    try:
        yield
    except _UNUSABLE as error:
        reason = " ".join(str(error).split())
        if isinstance(error, _NO_KUBECONFIG):
            reason = f"{_paths()} is no kubeconfig ({reason})"
        raise NoClusterError(
            f"no cluster to talk to: {reason}; run in a pod with a service account, or set KUBECONFIG"
        ) from error


def _is_pod(context: str | None) -> bool:
    return context is None and bool(os.environ.get(_IN_CLUSTER)) and not os.environ.get("KUBECONFIG")


def _kubeconfig() -> str:
    """Paths of the files, of which one is there: of others the client says that they lack a key."""
    paths = _paths()
    if not any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep)):
        raise ConfigException(f"there is no {paths}")
    return paths


def _paths() -> str:
    return os.environ.get("KUBECONFIG") or _KUBECONFIG
