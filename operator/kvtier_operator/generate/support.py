"""SUPPORT.md: what kvtier works with, from the constants that decide it and from what the tests run."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kvtier_connector.supported import TESTED_RELEASES
from kvtier_operator.api.spec.gateway import GatewayProvider
from kvtier_operator.api.spec.router import SUPPORTED_VERSIONS
from kvtier_operator.generate.chart.about import OLDEST_KUBERNETES
from kvtier_operator.generate.notice import notice
from kvtier_operator.planning.images import PUBLISHED, ImageName
from kvtier_scorer.config.flavors import llm_d

_PAGE: Final = Path(__file__).with_name("support.md")
_TOOLS: Final = "tests/tools"
_EXTENSION: Final = "sigs.k8s.io/gateway-api-inference-extension"


def support_page(root: Path) -> str:
    """The whole page.

    Args:
        root: The checkout, whose tests say which versions they run.
    """
    rows = (
        ("Kubernetes", f"{OLDEST_KUBERNETES} and later", _module(root, "kubernetes", "k8s.io/kubernetes")),
        ("Helm", "3.8 and later, for charts in registries", _module(root, "helm", "helm.sh/helm/v4")),
        ("Python", _python(root), "3.11"),
        ("vLLM, backend KVTier", _listed(TESTED_RELEASES), _listed(TESTED_RELEASES.values())),
        ("vLLM, backend Native", _tag(ImageName.VLLM), _tag(ImageName.VLLM)),
        ("LMCache, backends LMCache and LMCacheMP", _tag(ImageName.LMCACHE), _tag(ImageName.LMCACHE)),
        ("llm-d-router, flavor llm-d", _listed(_minors("0.")), f"0.9.0, {llm_d.TESTED_VERSION}"),
        (
            "Gateway API inference extension, flavor gaie",
            _listed(_minors("1.")),
            _listed(_module(root, folder, _EXTENSION) for folder in ("picker-1.4", "picker")),
        ),
        ("Gateway API", "v1", _module(root, "crds", "sigs.k8s.io/gateway-api")),
        (
            "Gateways",
            f"any; objects of their own for {_listed(_providers())}; or none, with provider standalone",
            "Envoy; the others' CRDs",
        ),
        ("Envoy, provider standalone", _tag(ImageName.ENVOY), PUBLISHED[ImageName.ENVOY].rpartition("-v")[2]),
        (
            "Prometheus operator",
            "monitoring.coreos.com/v1",
            _module(root, "crds", "github.com/prometheus-operator/prometheus-operator"),
        ),
        (
            "KEDA, spec.autoscaling with prometheusUrl",
            "2, keda.sh/v1alpha1",
            f"the CRD of {_module(root, 'crds', 'github.com/kedacore/keda/v2')}",
        ),
    )
    lines = [("", "Works with", "Tested"), ("---",) * 3, *rows]
    matrix = "".join(f"| {' | '.join(each)} |\n" for each in lines)
    return f"<!-- {notice('operator/kvtier_operator/generate/support.md')} -->\n" + _PAGE.read_text(
        encoding="utf-8"
    ).format(matrix=matrix)


def _module(root: Path, folder: str, module: str) -> str:
    """The version of a Go module that the tests run."""
    text = (root / _TOOLS / folder / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert found, f"{_TOOLS}/{folder}/go.mod requires no {module}"  # noqa: S101 - a checkout's own file
    return found[1]


def _python(root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['requires-python'].removeprefix('>=')} and later"


def _tag(name: ImageName) -> str:
    return f"`{PUBLISHED[name]}`"


def _minors(start: str) -> list[str]:
    """llm-d's are 0.x, the extension's 1.x."""
    return [each for each in SUPPORTED_VERSIONS if each.startswith(start)]


def _providers() -> list[str]:
    without = (GatewayProvider.NONE, GatewayProvider.STANDALONE)
    return [each.value for each in GatewayProvider if each not in without]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
