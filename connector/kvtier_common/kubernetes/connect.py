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


async def connection(context: str | None = None, kubeconfig: str | None = None) -> Configuration:
    """The client's configuration, with credentials that renew themselves; NoClusterError says what to set.

    Args:
        context: Of the kubeconfig; its current one where it is None.
        kubeconfig: A file in place of those that KUBECONFIG names.
    """
    configuration = Configuration()
    with translate_kubeconfig_errors(kubeconfig):
        if _is_pod(context, kubeconfig):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(_existing(kubeconfig), context=context, client_configuration=configuration)
    return configuration


def own_namespace(context: str | None = None, kubeconfig: str | None = None) -> str:
    """The namespace where none is named: the context's, or the pod's own; arguments and errors as above."""
    with translate_kubeconfig_errors(kubeconfig):
        if _is_pod(context, kubeconfig):
            return _POD_NAMESPACE.read_text(encoding="utf-8").strip()
        config = KubeConfigMerger(_existing(kubeconfig)).config
        settings = config["contexts"].get_with_name(context or config["current-context"])["context"]
    return str(settings.safe_get("namespace") or "default")


@contextmanager
def translate_kubeconfig_errors(kubeconfig: str | None = None) -> Iterator[None]:
    """Around what takes a kubeconfig at its word.

    Raises NoClusterError: it holds something that nobody can use, such as a certificate that is none.
    """
    try:
        yield
    except _UNUSABLE as error:
        reason = " ".join(str(error).split())
        if isinstance(error, _NO_KUBECONFIG):
            reason = f"{kubeconfig or _paths()} is no kubeconfig ({reason})"
        remedy = "" if kubeconfig else "; run in a pod with a service account, or set KUBECONFIG"
        raise NoClusterError(f"no cluster to talk to: {reason}{remedy}") from error


def _is_pod(context: str | None, kubeconfig: str | None) -> bool:
    is_named = context or kubeconfig or os.environ.get("KUBECONFIG")
    return not is_named and bool(os.environ.get(_IN_CLUSTER))


def _existing(kubeconfig: str | None) -> str:
    """Paths of the files, of which one is there: of others the client says that they lack a key."""
    paths = kubeconfig or _paths()
    if not any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep)):
        raise ConfigException(f"there is no {paths}")
    return paths


def _paths() -> str:
    return os.environ.get("KUBECONFIG") or _KUBECONFIG
