"""Every generated file of the repository."""

from pathlib import Path
from typing import Final

from kvtier_operator.api.schema.crd import CRD_NAME, crd, openapi_schema
from kvtier_operator.api.schema.reference import reference
from kvtier_operator.generate.chart import chart_files
from kvtier_operator.generate.manifests import base_files, static_files
from kvtier_operator.generate.notice import notice
from kvtier_operator.generate.rights import rights_page
from kvtier_operator.generate.support import support_page
from kvtier_operator.generate.versions import versions_page
from kvtier_operator.generate.yaml_text import yaml_text

_API: Final = "operator/kvtier_operator/api"
# operator/kvtier_operator/generate/files.py -> the repository
ROOT: Final = Path(__file__).resolve().parents[3]


def generated_files() -> dict[str, str]:
    """Path from the repository's root, and whole text."""
    return {
        f"manifests/base/{CRD_NAME}.yaml": f"# {notice(_API)}\n{yaml_text(crd())}",
        "docs/reference/api.md": f"<!-- {notice(_API)} -->\n{reference(openapi_schema())}",
        "docs/operations/rbac.md": rights_page(),
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
