"""kvtier as a platform team has it: a node, images, the CRDs it builds on, the chart installed with helm."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.images.engines import engine_mounts
from tests.cluster.harness.images.kvtier import ARCHIVES
from tests.cluster.harness.operator.places import CHART, SYSTEM
from tests.cluster.harness.operator.shipped import SYSTEM_NAMESPACE
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Node, Provider


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with one node where kvtier is installed, its operator Ready where the least is admitted.

    Attributes:
        node: The node.
        kubectl: kubectl with all rights.
        helm: helm with all rights; the release is `kvtier` in `kvtier-system`.
    """

    node: Node
    kubectl: Command
    helm: Command


@contextmanager
def running_site(provider: Provider, say: Say, *, hugepages: int) -> Iterator[Site]:
    """Makes the node and the images, and installs kvtier; everything is gone afterwards but the caches.

    Args:
        provider: What makes the node.
        say: Takes lines about what takes long.
        hugepages: How many 2 MiB pages the node has.
    """
    archives = [archive(say) for archive in ARCHIVES]
    with (
        tempfile.TemporaryDirectory(prefix="kvtier-site-") as folder,
        provider.node(say, hugepages=hugepages, images=archives, mounts=engine_mounts(say)) as node,
    ):
        kubeconfig = node.cluster.kubeconfig(Path(folder))
        kubectl = command("kubectl", kubeconfig, Path(folder), say)
        helm = command("helm", kubeconfig, Path(folder), say)
        with node.cluster.client() as api:
            for definition in published_crds():
                install(api, definition)
        say("helm install kvtier charts/tiered-prefix-cache")
        kubectl("create", "--filename", "-", stdin=json.dumps(SYSTEM_NAMESPACE))
        helm("install", "kvtier", CHART, "--namespace", SYSTEM, "--wait", "--timeout", "180s")
        yield Site(node, kubectl, helm)
