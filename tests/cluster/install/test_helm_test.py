"""What `helm test` runs, as a process with the rights of its pod: no node is there to run that."""

import os
import subprocess
import sys
from pathlib import Path

import yaml
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, OPERATOR

NAME = f"{OPERATOR}-test"
OF_TEST = ("ServiceAccount", "Role", "RoleBinding")


def test_it_is_admitted_and_needs_no_rights_but_its_own(
    helm: Command, kubectl: Command, site: ControlPlane, clean_system: str, tmp_path: Path
) -> None:
    at = ("--namespace", clean_system)
    helm("install", "kvtier", CHART, *at)
    rendered = [each for each in yaml.safe_load_all(helm("template", "kvtier", CHART, *at)) if each]
    own = [document for document in rendered if document["metadata"]["name"] == NAME]
    account = [document for document in own if document["kind"] in OF_TEST]
    assert len(account) == len(OF_TEST)
    try:
        kubectl("apply", "--filename", "-", stdin=yaml.safe_dump_all(account))
        kubeconfig = site.kubeconfig_for_service_account(clean_system, NAME, tmp_path)
        [pod] = [document for document in own if document["kind"] == "Pod"]
        # the namespace admits the least
        kubectl("create", "--dry-run=server", "--filename", "-", stdin=yaml.safe_dump(pod))
        _, *command = pod["spec"]["containers"][0]["command"]
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, *command],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        knows, runs, takes = done.stdout.splitlines()
        assert knows == "ok    the API server has kvcachetiers of kvtier.dev/v1alpha1"
        assert runs.startswith(f"FAIL  no pod of Deployment {clean_system}/{OPERATOR} is ready: ")
        assert takes == "ok    a KVCacheTier would be accepted"
        assert kubectl("get", "kvct", *at) == ""
    finally:
        kubectl("delete", "--filename", "-", "--ignore-not-found", stdin=yaml.safe_dump_all(account))


def test_without_rights_to_give_there_is_no_test(helm: Command) -> None:
    assert NAME not in helm("template", "kvtier", CHART, "--set", "rbac.create=false")
