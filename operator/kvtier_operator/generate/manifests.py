"""The generated part of manifests/: an operator for the whole cluster, each overlay's resource rendered."""

from pathlib import Path
from typing import Any, Final

from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.generate.notice import notice
from kvtier_operator.generate.rules_text import rules_text
from kvtier_operator.generate.yaml_text import Below, Text, yaml_text
from kvtier_operator.install import install_objects
from kvtier_operator.install.monitoring import dashboard, prometheus_rule, service_monitor
from kvtier_operator.install.rbac import EVERYTHING
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_NOTICE: Final = f"# {notice('operator/kvtier_operator/install')}\n"


def base_files() -> dict[str, str]:
    """One file an object of manifests/base, and the operator's own monitoring objects: path to text."""
    install = Installation()
    files = {f"manifests/base/{_file_name(each)}": _text(each) for each in install_objects(install)}
    monitoring = (service_monitor(install), prometheus_rule(install), dashboard(install))
    return files | {f"manifests/components/monitoring/{_file_name(each)}": _text(each) for each in monitoring}


def static_files(root: Path) -> dict[str, str]:
    """What `kvtier render` prints for the resource of each overlay below `root`: path to text."""
    overlays = sorted(each.name for each in (root / "manifests/overlays").iterdir())
    return {f"manifests/static/{overlay}/objects.yaml": _rendered(root, overlay) for overlay in overlays}


def _rendered(root: Path, overlay: str) -> str:
    source = f"manifests/overlays/{overlay}/kvcachetier.yaml"
    [(_, resource)] = load_resources([str(root / source)])
    plan = make_plan(resource, Observed())
    if plan.rejected:
        raise InvalidInputError(source, Problem("", "a check refuses it: see `kvtier plan`"))
    return f"# {notice(source)}\n{to_yaml(build_objects(plan))}"


def _text(document: dict[str, Any]) -> str:
    texts: dict[str, Text] = {}
    if document["kind"] == "ClusterRole" and document["metadata"]["name"] == Installation().name:
        texts["rules"] = Below(rules_text(EVERYTHING))
    return _NOTICE + yaml_text(document, texts)


def _file_name(document: dict[str, Any]) -> str:
    """Such as cluster_role_binding.yaml, or cluster_role_view.yaml for one whose name says more."""
    kind = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in document["kind"])
    further = (
        document["metadata"]["name"].removeprefix(Installation().name) if kind == "_cluster_role" else ""
    )
    return f"{kind.removeprefix('_')}{further.replace('-', '_')}.yaml"
