"""Two engines on the node behind a picker, once their resource is Ready, and what can be seen of them."""

import json
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.harness.api.settled import settle
from tests.cluster.harness.node.processes import PodProcess, pod_processes
from tests.cluster.harness.operator.installed import Site
from tests.picker.harness.client import get

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import MIB
from kvtier_operator.runtime.metrics import parse_metrics

RESOURCE: Final = Path(__file__).with_name("engines.yaml")
CAPACITY_BYTES: Final = 128 * MIB
METRICS_PORT, SERVING_PORT = 9090, 8000
# The tier's pages, and the picker.
KINDS: Final[dict[str, dict[str, Any]]] = {
    "huge pages, our picker": {
        "tiers": {"cpu": {"hugepages": {"policy": "Require", "pageSize": "2Mi"}}},
        "router": {"flavor": "builtin", "kvEvents": True},
    },
    "locked memory, upstream's picker": {
        "tiers": {"cpu": {"hugepages": {"policy": "Never"}, "memlock": {"policy": "Require"}}},
        "router": {"flavor": "gaie", "version": "1.5"},
    },
}
OURS, UPSTREAMS = KINDS


class Engines:
    """A resource of one of KINDS, and its pods."""

    def __init__(self, site: Site, kind: str) -> None:
        self.site, self.kind = site, kind
        self.name = "ours" if kind == OURS else "upstreams"
        document = yaml.safe_load(RESOURCE.read_text())
        document["metadata"]["name"] = self.name
        document["spec"]["tiers"]["cpu"] |= KINDS[kind]["tiers"]["cpu"]
        document["spec"]["router"] = KINDS[kind]["router"]
        site.kubectl("apply", "--server-side", "--filename", "-", stdin=json.dumps(document))
        self.plan = make_plan(parse_resource(document, str(RESOURCE)), Observed())
        self.settle(2)
        self.resource = site.kubectl.json("get", "kvct", self.name)

    def settle(self, replicas: int) -> None:
        """Return when the cluster is as the resource says, with so many engines and no other."""
        settle(self.site.kubectl, self.name, replicas)

    def scale(self, replicas: int) -> None:
        """Have so many engines; return when they are there, and no other."""
        self.site.kubectl("scale", "kvct", self.name, f"--replicas={replicas}")
        self.settle(replicas)

    @property
    def has_hugepages(self) -> bool:
        """Whether the tier is on huge pages, and not in locked memory."""
        return self.kind == OURS

    def pods(self, component: str = "engine") -> list[dict[str, Any]]:
        """Pods that are not on their way out."""
        labels = f"app.kubernetes.io/component={component},app.kubernetes.io/instance={self.name}"
        found: list[dict[str, Any]] = self.site.kubectl.json("get", "pods", "--selector", labels)["items"]
        return [
            pod for pod in found if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("podIP")
        ]

    def ips(self, component: str = "engine") -> dict[str, str]:
        """IP address of each such pod, by name."""
        return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in self.pods(component)}

    def processes(self) -> list[list[PodProcess]]:
        """What the kernel says of each engine pod's processes."""
        return [pod_processes(pod["metadata"]["uid"]) for pod in self.pods()]

    def picker_metrics(self) -> str:
        """What our picker counts."""
        (ip,) = self.ips("picker").values()
        return get(f"http://{ip}:{METRICS_PORT}/metrics").body.decode()

    def cached(self) -> dict[str, float]:
        """Prompt tokens that each engine had cached, by the engine's own counters."""
        pages = self._pages()
        return {ip: sum(parse_metrics(page).cached_tokens.values()) for ip, page in pages.items()}

    def running(self) -> dict[str, float]:
        """How many requests each engine has under way."""
        return {ip: _sum_of("vllm:num_requests_running", page) for ip, page in self._pages().items()}

    def _pages(self) -> dict[str, str]:
        return {ip: get(f"http://{ip}:{SERVING_PORT}/metrics").body.decode() for ip in self.ips().values()}


def _sum_of(metric: str, page: str) -> float:
    families = text_string_to_metric_families(page)
    return sum(sample.value for family in families for sample in family.samples if sample.name == metric)
