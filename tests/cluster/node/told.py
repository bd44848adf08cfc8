"""An engine on the node that is told what to keep, and people who tell it with rights of their own."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster.harness.api.settled import settle
from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.harness.operator.installed import Site
from tests.picker.harness.client import post

Done = subprocess.CompletedProcess[str]
RESOURCE: Final = Path(__file__).with_name("told.yaml")
NAME: Final = "told"
NAMESPACE: Final = "default"
CHUNK_TOKENS: Final = 32
"""Blocks of the device, and what of a prompt is cached."""
PREFIXES: Final = {
    name: f"You are the {name}. " + "Answer in one sentence, and name your source. " * 40
    for name in ("assistant", "tools")
}
_CONFIG_MAP: Final = "tool-descriptions"
_PAGE: Final = Path(__file__).parents[3] / "docs/user-guide/run/kubectl-plugin.md"
_ROLE: Final = re.compile(r"^```yaml\n(apiVersion: rbac[^`]*kind: Role\n[^`]*)^```$", re.MULTILINE)
_POD_METRICS: Final = {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}


@dataclass(frozen=True, slots=True)
class Answered:
    """What an engine says of a prompt."""

    tokens: int  # of the prompt
    cached_tokens: int  # of those, found in a cache

    @property
    def is_whole(self) -> bool:
        """Whether all of it was cached that can be: whole blocks, of which the last token is computed."""
        return self.cached_tokens == (self.tokens - 1) // CHUNK_TOKENS * CHUNK_TOKENS > 0


class Told:
    """The resource, its one engine pod, and users."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self._folder = site, folder
        document = yaml.safe_load(RESOURCE.read_text())
        document["spec"]["prefixes"][0]["text"] = PREFIXES["assistant"]
        tools = {"tools.json": json.dumps({"text": PREFIXES["tools"], "retain_s": 3600})}
        self._apply({"apiVersion": "v1", "kind": "ConfigMap", **_named(_CONFIG_MAP), "data": tools})
        self._apply(document)
        role = documented_role()
        self.teller = self._user("teller", role["rules"])
        without = [rule for rule in role["rules"] if "pods/exec" not in rule["resources"]]
        self.reader = self._user("reader", [*without, _POD_METRICS])
        settle(site.kubectl, NAME, 1)
        labels = f"app.kubernetes.io/component=engine,app.kubernetes.io/instance={NAME}"
        [self.pod] = site.kubectl.json("get", "pods", "--selector", labels)["items"]

    def delete(self) -> None:
        """The resource; its pods end while others' begin."""
        self.site.kubectl("delete", "kvct", NAME, "--wait=false")

    def _apply(self, document: dict[str, Any]) -> None:
        self.site.kubectl("apply", "--filename", "-", stdin=json.dumps(document))

    def _user(self, name: str, rules: list[dict[str, Any]]) -> Path:
        """Make a service account with these rights and no other; returns its kubeconfig."""
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        self._apply({"apiVersion": "v1", "kind": "ServiceAccount", **_named(name)})
        self._apply({"apiVersion": f"{group}/v1", "kind": "Role", **_named(name), "rules": rules})
        self._apply(
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                **_named(name),
                "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
                "subjects": [subject],
            }
        )
        return self.site.node.cluster.kubeconfig_for_service_account(NAMESPACE, name, self._folder)

    def run(self, user: Path, *words: str) -> Done:
        """What `kubectl kvtier` does and says for a user."""
        return kubectl_kvtier(self.site, user, *words)

    def tell(self, verb: str, *words: str) -> dict[str, Any]:
        """Have the engine told something by who may; returns what it says."""
        done = self.run(self.teller, verb, NAME, *words, "-o", "json")
        assert (done.returncode, done.stderr) == (0, ""), done
        [pod] = json.loads(done.stdout)["engines"]
        assert (pod["pod"], pod["error"]) == (self.pod["metadata"]["name"], None)
        [said] = pod["engines"]
        engine: dict[str, Any] = said
        return engine

    def ask(self, prompt: str, salt: str = "") -> Answered:
        """Have the engine answer a prompt."""
        salted = {"cache_salt": salt} if salt else {}
        body = {"model": SMALL_MODEL.name, "prompt": prompt, "max_tokens": 1, "temperature": 0, **salted}
        answer = post(f"{self._url}/v1/completions", json.dumps(body).encode())
        assert answer.status == 200, answer.body
        usage = json.loads(answer.body)["usage"]
        details = usage["prompt_tokens_details"] or {}
        return Answered(usage["prompt_tokens"], details.get("cached_tokens") or 0)

    def log(self) -> list[str]:
        """What the engine's container has written."""
        name = self.pod["metadata"]["name"]
        return self.site.kubectl("logs", name, "--container", "engine").splitlines()

    @property
    def _url(self) -> str:
        return f"http://{self.pod['status']['podIP']}:8000"


def kubectl_kvtier(site: Site, user: Path, *words: str) -> Done:
    """What `kubectl kvtier` does and says for a kubeconfig: kubectl finds the plugin beside this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603 - our own command
        [site.kubectl.program, "kvtier", *words],
        env={**os.environ, "KUBECONFIG": str(user), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def documented_role() -> dict[str, Any]:
    """The role that the page of these commands gives whoever shall use them and do no more."""
    [text] = _ROLE.findall(_PAGE.read_text())
    role: dict[str, Any] = yaml.safe_load(text)
    return role


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}
