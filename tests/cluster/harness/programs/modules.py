"""Folders of Go modules whose files the tests read: the CRDs that other projects publish."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster.harness.programs.tools import MissingToolError, go

_FOLDER: Final = Path(__file__).resolve().parents[3] / "tools" / "crds"
# Where each project keeps the CRDs of objects that kvtier renders. GKE's own are in no Go module.
_FILES: Final = {
    "sigs.k8s.io/gateway-api": ("config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",),
    "sigs.k8s.io/gateway-api-inference-extension": (
        "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
    ),
    "istio.io/api": ("kubernetes/customresourcedefinitions.gen.yaml",),
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "github.com/kedacore/keda/v2": ("config/crd/bases/keda.sh_scaledobjects.yaml",),
}
_ISTIO_NEEDED: Final = "destinationrules.networking.istio.io"


def published_crds() -> list[dict[str, Any]]:
    """CRDs of gateway, picker, scaling and monitoring objects, at the versions in tests/tools/crds/go.mod."""
    documents = [
        document
        for module, files in _FILES.items()
        for file in files
        for document in yaml.load_all((module_folder(module) / file).read_text(), yaml.CSafeLoader)
        if document
    ]
    return [
        document for document in documents if "istio" not in document["spec"]["group"] or _is_needed(document)
    ]


def _is_needed(definition: dict[str, Any]) -> bool:
    return bool(definition["metadata"]["name"] == _ISTIO_NEEDED)


def module_folder(module: str, required_by: Path = _FOLDER) -> Path:
    """The module's files, downloaded the first time and checked against go.sum.

    Args:
        module: Its path.
        required_by: Folder of the go.mod that names its version.
    """
    text = (required_by / "go.mod").read_text()
    match = re.search(rf"^(?:require)?\s+{re.escape(module)} (v\S+)", text, re.MULTILINE)
    assert match, f"{required_by / 'go.mod'} requires no {module}"
    answer = subprocess.run(  # noqa: S603 - our own command
        [go(), "mod", "download", "-json", f"{module}@{match[1]}"],
        cwd=required_by,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise MissingToolError(f"{module} {match[1]} cannot be had: {answer.stdout} {answer.stderr}")
    return Path(json.loads(answer.stdout)["Dir"])
