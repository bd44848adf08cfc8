"""Generated pages: docs/operations/rbac.md, SUPPORT.md, docs/reference/models.md and vllm-versions.md."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kvtier_connector.supported import TESTED_RELEASES, minor_of
from kvtier_operator.api.first_resource import first_document
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.spec.router import SUPPORTED_VERSIONS, GatewayProvider
from kvtier_operator.generate.chart.files import OLDEST_KUBERNETES
from kvtier_operator.generate.yaml_text import notice
from kvtier_operator.install.admission import PRIVILEGES
from kvtier_operator.install.rbac import (
    CLUSTER,
    DELETION_COST,
    LEADER_ELECTION,
    NAMESPACED,
    PICKER_LEADER_ELECTION,
    PICKERS,
    STORE_PASSWORD,
    Rule,
)
from kvtier_operator.planning.cards import SIGHTINGS, newest_seen
from kvtier_operator.planning.images import PUBLISHED, ImageName
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.units import size
from kvtier_scorer.config.flavors import llm_d

_TOOLS: Final = "tests/tools"
_EXTENSION: Final = "sigs.k8s.io/gateway-api-inference-extension"


def _page(source: str, template: str, **parts: str) -> str:
    text = Path(__file__).with_name(template).read_text(encoding="utf-8")
    return f"<!-- {notice(source)} -->\n{text.format(**parts)}"


def rights_page() -> str:
    """The whole page."""
    return _page(
        "operator/kvtier_operator/install/rbac.py",
        "rights.md",
        namespaced=_table(NAMESPACED),
        pickers=_table((*PICKERS, *PICKER_LEADER_ELECTION)),
        cost=_table(DELETION_COST),
        password=_table(STORE_PASSWORD),
        cluster=_table(CLUSTER),
        leader=_table(LEADER_ELECTION),
        privileges=_privileges(),
    )


def _table(rules: Iterable[Rule]) -> str:
    rows = [
        (f"`{rule.group or 'core'}`", ", ".join(rule.resources), ", ".join(rule.verbs), rule.reason)
        for rule in rules
    ]
    return _lines([("Group", "Resources", "Verbs", "Why"), ("---",) * 4, *rows])


def _privileges() -> str:
    rows = [
        (
            f"`{privilege.id}`",
            f"`{privilege.field}`",
            privilege.what.rstrip(","),
            f"`{privilege.creatable}`" if privilege.creatable else "nothing",
            f"`kvcachetiers/{privilege.name}`",
        )
        for privilege in PRIVILEGES
    ]
    heads = ("Row", "Field", "What it gets", "Enough to `create`", "Or to `use`")
    return _lines([heads, ("---",) * len(heads), *rows])


def _lines(lines: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def support_page(root: Path) -> str:
    """The whole page."""
    rows = (
        ("Kubernetes", f"{OLDEST_KUBERNETES} and later", _module(root, "kubernetes", "k8s.io/kubernetes")),
        ("Helm", "3.8 and later, for charts in registries", _module(root, "helm", "helm.sh/helm/v4")),
        ("Python", _python(root), "3.11"),
        (
            "vLLM, backend KVTier",
            ", ".join(TESTED_RELEASES),
            f"{', '.join(TESTED_RELEASES.values())} on the CPU; GPUs: see below",
        ),
        ("vLLM, backend Native", _tag(ImageName.VLLM), _tag(ImageName.VLLM)),
        ("LMCache, backends LMCache and LMCacheMP", _tag(ImageName.LMCACHE), _tag(ImageName.LMCACHE)),
        ("llm-d-router, flavor llm-d", ", ".join(_minors("0.")), f"0.9.0, {llm_d.TESTED_VERSION}"),
        (
            "Gateway API inference extension, flavor gaie",
            ", ".join(_minors("1.")),
            ", ".join(_module(root, folder, _EXTENSION) for folder in ("picker-1.4", "picker")),
        ),
        ("Gateway API", "v1", _module(root, "crds", "sigs.k8s.io/gateway-api")),
        (
            "Gateways",
            f"any; objects of their own for {', '.join(_providers())}; or none, with provider standalone",
            "Envoy; the others' CRDs",
        ),
        ("Envoy, provider standalone", _tag(ImageName.ENVOY), PUBLISHED[ImageName.ENVOY].rpartition("-v")[2]),
        ("Valkey, spec.tiers.remote.managed", _tag(ImageName.VALKEY), _tag(ImageName.VALKEY)),
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
    matrix = _lines([("", "Works with", "Tested"), ("---",) * 3, *rows])
    cards = _lines([("Card", "vLLM", "When", "Kinds of models", "How"), ("---",) * 5, *_cards()])
    return _page("operator/kvtier_operator/generate/support.md", "support.md", matrix=matrix, cards=cards)


def _cards() -> list[tuple[str, ...]]:
    return [(each.card, each.vllm, each.when, each.kinds, each.how) for each in SIGHTINGS]


def _module(root: Path, folder: str, module: str) -> str:
    """The version of a Go module that the tests run."""
    text = (root / _TOOLS / folder / "go.mod").read_text(encoding="utf-8")
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert match, f"{_TOOLS}/{folder}/go.mod requires no {module}"  # noqa: S101 - a checkout's own file
    return match[1]


def _python(root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['requires-python'].removeprefix('>=')} and later"


def _tag(name: ImageName) -> str:
    return f"`{PUBLISHED[name]}`"


def _minors(start: str) -> list[str]:
    """llm-d's are 0.x, the extension's 1.x."""
    return [
        supported_version for supported_version in SUPPORTED_VERSIONS if supported_version.startswith(start)
    ]


def _providers() -> list[str]:
    without = (GatewayProvider.NONE, GatewayProvider.STANDALONE)
    return [provider.value for provider in GatewayProvider if provider not in without]


def versions_page() -> str:
    """The whole page."""
    rows = "".join(f"| {minor} | {release} |\n" for minor, release in TESTED_RELEASES.items())
    table = f"| Minor | Last release that the tests have run |\n|---|---|\n{rows}"
    source = "connector/kvtier_connector/supported.py"
    return _page(source, "versions.md", table=table, default_minor=minor_of(newest_seen()))


def models_page() -> str:
    """The whole page."""
    rows = [_model(name, entries()[name]) for name in sorted(entries(), key=str.lower)]
    heads = ("Model", "KV a token", "A prefix", "Weights")
    table = _lines([heads, ("---", "---:", "---:", "---:"), *rows])
    return _page("operator/kvtier_operator/planning/model_shape/catalogue.yaml", "models.md", table=table)


def _model(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    document = first_document(name)
    document["spec"]["tiers"] = {"cpu": {"capacity": "1Gi"}}
    geometry = resolve_geometry(parse_resource(document, name).planned_spec, Observed())
    figures = (geometry.kv_bytes_per_token, geometry.bytes_per_prefix, geometry.weights_bytes)
    names = ", ".join(f"`{one}`" for one in (name, *fields.get("aliases", ())))
    return names, *(size(figure) if figure else "" for figure in figures)
