"""Where the API server is and who we are: the pod's service account, else KUBECONFIG."""

import os
from pathlib import Path
from typing import Final

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION as _KUBECONFIG

from kvtier_common.errors import PermanentError

_IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"


class NoClusterError(PermanentError):
    """Neither a service account nor a usable kubeconfig."""


async def connection() -> Configuration:
    """Configuration of the official client, credentials that renew themselves included.

    Raises:
        NoClusterError: With what to set.
    """
    configuration = Configuration()
    try:
        if os.environ.get(_IN_CLUSTER) and not os.environ.get("KUBECONFIG"):
            load_incluster_config(client_configuration=configuration)
        else:
            _look_for_kubeconfig()
            await load_kube_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise NoClusterError(
            f"no cluster to talk to: {error}; run in a pod with a service account, or set KUBECONFIG"
        ) from error
    return configuration


def _look_for_kubeconfig() -> None:
    """The client says of one that is not there that it lacks a key."""
    if not any(Path(each).expanduser().is_file() for each in _KUBECONFIG.split(os.pathsep)):
        raise ConfigException(f"there is no {_KUBECONFIG}")
