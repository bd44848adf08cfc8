"""Every generated file of the repository."""

from pathlib import Path
from typing import Any, Final

from kvtier_operator.api.schema.crd import CRD_NAME, crd, openapi_schema
from kvtier_operator.api.schema.reference import reference
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.generate.chart.files import chart_files
from kvtier_operator.generate.pages import models_page, rights_page, support_page, versions_page
from kvtier_operator.generate.yaml_text import Below, Text, notice, rules_text, yaml_text
from kvtier_operator.install import install_objects
from kvtier_operator.install.attachment import attachment_policy, attachment_policy_binding
from kvtier_operator.install.monitoring import dashboard, prometheus_rule, service_monitor
from kvtier_operator.install.rbac import EVERYTHING, LEADER_ELECTION
from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

_NOTICE: Final = f"# {notice('operator/kvtier_operator/install')}\n"
_API: Final = "operator/kvtier_operator/api"
# operator/kvtier_operator/generate/files.py -> the repository
ROOT: Final = Path(__file__).resolve().parents[3]


def base_files() -> dict[str, str]:
    """One file an object of manifests/base, and of the components that bring further ones: path to text."""
    install = Installation()
    files = {
        f"manifests/base/{_file_name(manifest)}": _text(manifest) for manifest in install_objects(install)
    }
    components = {
        "attach": (attachment_policy(install), attachment_policy_binding(install)),
        "attach-image-volume": (
            attachment_policy(install, delivery=Delivery.IMAGE_VOLUME),
            attachment_policy_binding(install),
        ),
        "monitoring": (service_monitor(install), prometheus_rule(install), dashboard(install)),
    }
    return files | {
        f"manifests/components/{component}/{_file_name(manifest)}": _text(manifest)
        for component, manifests in components.items()
        for manifest in manifests
    }


def static_files(root: Path) -> dict[str, str]:
    """What `kvtier render` prints for the resource of each overlay below `root`: path to text."""
    overlays = sorted(folder.name for folder in (root / "manifests/overlays").iterdir())
    return {f"manifests/static/{overlay}/objects.yaml": _overlay(root, overlay) for overlay in overlays}


def _overlay(root: Path, overlay: str) -> str:
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
    if document["kind"] == "Role":
        texts["rules"] = Below(rules_text(LEADER_ELECTION))
    return _NOTICE + yaml_text(document, texts)


def _file_name(document: dict[str, Any]) -> str:
    """Such as cluster_role_binding.yaml, or cluster_role_view.yaml for one whose name says more."""
    kind = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in document["kind"])
    further = (
        document["metadata"]["name"].removeprefix(Installation().name) if kind == "_cluster_role" else ""
    )
    return f"{kind.removeprefix('_')}{further.replace('-', '_')}.yaml"


def generated_files() -> dict[str, str]:
    """Path from the repository's root, and whole text."""
    return {
        f"manifests/base/{CRD_NAME}.yaml": f"# {notice(_API)}\n{yaml_text(crd())}",
        "docs/reference/api.md": f"<!-- {notice(_API)} -->\n{reference(openapi_schema())}",
        "docs/operations/rbac.md": rights_page(),
        "docs/reference/models.md": models_page(),
        "docs/reference/vllm-versions.md": versions_page(),
        "SUPPORT.md": support_page(ROOT),
        **base_files(),
        **static_files(ROOT),
        **chart_files(),
    }


def out_of_date(root: Path) -> list[str]:
    """Paths of the generated files below `root` that are missing or differ from what the sources generate."""
    return [path for path, text in generated_files().items() if _content(root / path) != text]


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
