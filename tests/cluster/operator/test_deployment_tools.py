"""How tools that wait for a resource take it: helm by kstatus, Argo CD by the page's script."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.cluster.harness.api.commands import CommandError, command
from tests.cluster.harness.programs.tools import Say, program
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import Document, World, condition, resource

PAGE = Path(__file__).parents[3] / "docs/user-guide/run/gitops.md"
_REFUSED = {"tensorParallelSize": 3}


def argo_health(document: Document, say: Say, folder: Path) -> dict[str, str]:
    """What Argo CD's own Lua says of a resource by the page's script."""
    block = PAGE.read_text().partition("argocd-cm")[2].partition("```yaml\n")[2].partition("```")[0]
    script = yaml.safe_load(block)["data"]["resource.customizations.health.kvtier.dev_KVCacheTier"]
    program_text = (
        f"obj = {_lua(document)}\nlocal function check()\n{script}\nend\n"
        "local said = check()\nprint(said.status)\nprint(said.message)\n"
    )
    file = folder / "health.lua"
    file.write_text(program_text)
    done = subprocess.run([program("glua", say), file], capture_output=True, text=True, check=True)  # noqa: S603
    status, _, message = done.stdout.partition("\n")
    return {"status": status, "message": message.strip()}


def _lua(value: object) -> str:
    """A table literal."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{json.dumps(key)}] = {_lua(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(map(_lua, value)) + "}"
    return json.dumps(value)


def test_a_resource_that_no_operator_has_seen_is_not_ready(quiet_server: Cluster) -> None:
    with quiet_server.client() as api:
        created = World(api, "default").create(resource())
    pending = condition(created, "Ready")
    assert pending
    assert (pending["status"], pending["reason"]) == ("Unknown", "Pending")


def test_helm_and_argo_take_a_refused_resource_as_failed(
    world: World, server: Cluster, say: Say, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: tiers, version: 1.0.0}")
    (chart / "templates/tier.yaml").write_text(json.dumps(resource(engine=_REFUSED)))
    helm = command("helm", server.kubeconfig(), tmp_path, say)
    with pytest.raises(CommandError, match=r"Failed.*tensorParallelSize"):
        helm("install", "tiers", chart, "--namespace", world.namespace, "--wait", "--timeout", "20s")
    refused = argo_health(world.get(), say, tmp_path)
    assert refused["status"] == "Degraded"
    assert "spec.engine.tensorParallelSize" in refused["message"]


def test_a_resource_goes_from_in_progress_to_done(world: World, say: Say, tmp_path: Path) -> None:
    world.create(resource(router={"flavor": "builtin", "gateway": {"provider": "standalone"}}))
    assert argo_health(world.until_settled(), say, tmp_path)["status"] == "Progressing"
    assert condition(world.until_settled(), "Reconciling")
    world.make_ready()
    world.until_condition("Ready", status="True")
    assert argo_health(world.get(), say, tmp_path)["status"] == "Healthy"
    assert not condition(world.get(), "Reconciling")
