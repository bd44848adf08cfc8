"""An installed operator as a process: it has no node to run on."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.operator.operator import Operator, running_operator
from tests.cluster.harness.operator.places import OPERATOR, SYSTEM
from tests.cluster.harness.providers.provider import Cluster

_LOG_CHARACTERS: Final = 4000


@contextmanager
def run_installed(
    site: Cluster,
    kubectl: Command,
    folder: Path,
    *,
    sources: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Operator]:
    """The operator with the environment and the rights of the installed Deployment.

    Args:
        site: The cluster.
        kubectl: For it.
        folder: For the kubeconfig and the log.
        sources: A checkout whose operator to run; this one's when empty.
        env: Environment in place of the Deployment's.
    """
    pod = kubectl.json("get", "deployment", OPERATOR, "--namespace", SYSTEM)["spec"]["template"]["spec"]
    given = {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}
    environment = {**given, **(env or {})}
    if sources:
        packages = (sources / part for part in ("operator", "connector", "scorer"))
        environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    kubeconfig = site.kubeconfig_for_service_account(SYSTEM, pod["serviceAccountName"], folder)
    with running_operator(kubeconfig, folder / "operator.log", env=environment) as operator:
        try:
            yield operator
        except Exception as error:
            error.add_note(operator.process.log.read_text()[-_LOG_CHARACTERS:])
            raise
