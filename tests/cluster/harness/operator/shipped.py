"""The operator's account as the chart makes it: who an operator is in these tests, with no more rights."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster.harness.api.account import Account, nothing_refused
from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.operator.places import CHART, OPERATOR, SYSTEM
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster

RESTRICTED: Final = {"pod-security.kubernetes.io/enforce": "restricted"}
"""Labels of a namespace that admits the least."""
SYSTEM_NAMESPACE: Final = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": SYSTEM, "labels": RESTRICTED},
}
"""The operator's."""
_KINDS: Final = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@contextmanager
def shipped_account(cluster: Cluster, say: Say) -> Iterator[Account]:
    """Makes the account with the chart's rights; at the end nothing that it asked was refused.

    Raises:
        AssertionError: It asked what no rule lets it.
    """
    with tempfile.TemporaryDirectory(prefix="kvtier-shipped-") as folder:
        place = Path(folder)
        kubeconfig = cluster.kubeconfig(place)
        helm, kubectl = (command(name, kubeconfig, place, say) for name in ("helm", "kubectl"))
        kubectl("apply", "--filename", "-", stdin=json.dumps(_account_objects(helm)))
    account = Account(cluster, SYSTEM, OPERATOR)
    with nothing_refused(account):
        yield account


def _account_objects(helm: Command) -> dict[str, Any]:
    """The operator's namespace, its account and what it is bound to, as the chart renders them."""
    rendered = yaml.safe_load_all(helm("template", "kvtier", CHART, "--namespace", SYSTEM, "--skip-tests"))
    own = [document for document in rendered if document and document["kind"] in _KINDS]
    return {"apiVersion": "v1", "kind": "List", "items": [SYSTEM_NAMESPACE, *own]}
