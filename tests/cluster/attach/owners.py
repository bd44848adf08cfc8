"""Controllers of others that own vLLM's pods, KServe's and LeaderWorkerSet's, set up as by their charts.

What their charts run in a pod runs here as a process; the API server reaches its webhooks on loopback.
"""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.control_plane.certificates import Certificates
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.modules import module_folder
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say, program

_TOOLS: Final = Path(__file__).resolve().parents[2] / "tools"
_HOST: Final = "127.0.0.1"
# Of what the charts hold: no Deployment, which is a process here, and nothing of cert-manager's.
_APPLIED: Final = (
    "ConfigMap",
    "CustomResourceDefinition",
    "LLMInferenceServiceConfig",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)


@dataclass(frozen=True, slots=True)
class Owner:
    """A controller to start: its charts, and how its program is told where to listen."""

    name: str  # of its program in `tools.MODULES`, and of its folder in tests/tools
    module: str
    namespace: str
    charts: tuple[tuple[str, tuple[str, ...]], ...]  # folders in the module, each with values


KSERVE: Final = Owner(
    "llmisvc",
    "github.com/kserve/kserve",
    "kserve",
    (
        ("charts/kserve-llmisvc-crd", ()),
        ("charts/kserve-llmisvc-resources", ()),
        ("charts/kserve-runtime-configs", ("kserve.llmisvcConfigs.enabled=true",)),
    ),
)
LWS: Final = Owner("lws", "sigs.k8s.io/lws", "lws-system", (("charts/lws", ()),))


@contextmanager
def running_owner(owner: Owner, control_plane: ControlPlane, folder: Path, say: Say) -> Iterator[Process]:
    """Install what its charts hold and run its controller until the end of the block."""
    kubeconfig = control_plane.kubeconfig()
    kubectl, helm = (command(name, kubeconfig, folder, say) for name in ("kubectl", "helm"))
    port, health_port = free_ports(2)
    kubectl("create", "namespace", owner.namespace)
    documents = [
        _on_loopback(document, port, control_plane.certificates)
        for document in _rendered(owner, helm)
        if document["kind"] in _APPLIED
    ]
    definitions = [document for document in documents if document["kind"] == "CustomResourceDefinition"]
    hooks = [document for document in documents if "Webhook" in document["kind"]]
    others = [document for document in documents if document not in definitions and document not in hooks]
    with control_plane.client() as api:
        for definition in definitions:
            install(api, definition)
    arguments, environment = _settings(owner, port, health_port, control_plane.certificates, folder)
    process = Process(
        [program(owner.name, say), *arguments],
        folder / f"{owner.name}.log",
        env=environment | {"KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": owner.namespace},
    )
    try:
        process.wait_until(lambda: answers_ok(f"http://{_HOST}:{health_port}/readyz"))
        # an API server asks a webhook from the moment that it knows of it
        _apply(kubectl, hooks)
        _apply(kubectl, others)
        yield process
    finally:
        process.stop()


def _rendered(owner: Owner, helm: Command) -> list[dict[str, Any]]:
    folder = module_folder(owner.module, _TOOLS / owner.name)
    documents = list[dict[str, Any]]()
    for chart, values in owner.charts:
        settings = [word for value in values for word in ("--set", value)]
        text = helm(
            "template",
            owner.name,
            folder / chart,
            f"--namespace={owner.namespace}",
            "--include-crds",
            *settings,
        )
        documents += [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
    return documents


def _apply(kubectl: Command, documents: list[dict[str, Any]]) -> None:
    if documents:
        kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(documents))


def _on_loopback(document: dict[str, Any], port: int, certificates: Certificates) -> dict[str, Any]:
    """The same object, with webhooks asked at the process in place of a Service."""
    bundle = base64.b64encode(certificates.authority.file.read_bytes()).decode()

    def client(config: dict[str, Any]) -> dict[str, Any]:
        path = config["service"].get("path", "/")
        return {"url": f"https://{_HOST}:{port}{path}", "caBundle": bundle}

    for webhook in document.get("webhooks", []):
        webhook["clientConfig"] = client(webhook["clientConfig"])
    conversion = document.get("spec", {}).get("conversion", {}).get("webhook")
    if conversion:
        conversion["clientConfig"] = client(conversion["clientConfig"])
    return document


def _settings(
    owner: Owner, port: int, health_port: int, certificates: Certificates, folder: Path
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of its program."""
    health = f"{_HOST}:{health_port}"
    if owner is KSERVE:
        # controller-runtime looks for a certificate in the temporary folder, and cannot be told otherwise
        _put_certificate(folder / "k8s-webhook-server" / "serving-certs", certificates)
        options = [f"--webhook-port={port}", f"--health-probe-addr={health}", "--metrics-addr=0"]
        return options, {"TMPDIR": str(folder)}
    served = folder / "certificates"
    _put_certificate(served, certificates)
    config = folder / f"{owner.name}.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "config.lws.x-k8s.io/v1alpha1",
                "kind": "Configuration",
                "internalCertManagement": {"enable": False},
                "leaderElection": {"leaderElect": False},
                "metrics": {"bindAddress": "0"},
                "health": {"healthProbeBindAddress": health},
                "webhook": {"host": _HOST, "port": port, "certDir": str(served)},
            }
        )
    )
    return [f"--config={config}", "--leader-elect=false"], {}


def _put_certificate(folder: Path, certificates: Certificates) -> None:
    folder.mkdir(parents=True)
    shutil.copy(certificates.server.certificate, folder / "tls.crt")
    shutil.copy(certificates.server.key, folder / "tls.key")
