"""The chart's templates: the objects of install/ with places for values, and what those include."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_operator.api.schema.crd import crd
from kvtier_operator.generate.yaml_text import Below, Inline, Text, With, notice, rules_text, yaml_text
from kvtier_operator.install import rbac as rights
from kvtier_operator.install.admission import admission_policy, admission_policy_binding
from kvtier_operator.install.attachment import attachment_policy, attachment_policy_binding
from kvtier_operator.install.deployment import (
    CONTAINER_SECURITY,
    POD_SECURITY,
    STRATEGY,
    deployment,
    helm_test,
    network_policy,
    pod_disruption_budget,
    service,
)
from kvtier_operator.install.monitoring import dashboard, prometheus_rule, service_monitor
from kvtier_operator.install.rbac import (
    AGGREGATE,
    cluster_role,
    cluster_role_binding,
    edit_role,
    leader_role,
    leader_role_binding,
    role,
    role_binding,
    service_account,
    view_role,
)
from kvtier_operator.install.settings import Installation
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.base.names import POLICY_VERSIONS
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document
from kvtier_operator.planning.images import PUBLISHED, UNPUBLISHED_REGISTRY, ImageName

# What stands in the objects of install/ and what in its place in the chart.
_INSTALL: Final = Installation(
    name="KVTIERNAME",
    namespace="KVTIERNAMESPACE",
    image="KVTIERIMAGE",
    connector_image="KVTIERCONNECTOR",
)
_EXPRESSIONS: Final = {
    _INSTALL.namespace: "{{ $.Release.Namespace }}",
    _INSTALL.name: '{{ include "kvtier.name" $ }}',
    _INSTALL.image: '{{ include "kvtier.image" $ }}',
    _INSTALL.connector_image: '{{ include "kvtier.connectorImage" $ }}',
}
_EACH: Final = "KVTIEREACH"
# also with values kept from a release that had no such policy
_GUARDED: Final = 'dig "enabled" true ($.Values.admissionPolicy | default dict)'
# as above; a cluster that does not serve the kind is left without
_ATTACHES: Final = (
    'and (dig "enabled" true ($.Values.attach | default dict)) (include "kvtier.attachmentApi" $)'
)
_PAYLOAD: Final = 'dig "payload" "init-container" ($.Values.attach | default dict)'
_ATTACHMENT_API: Final[dict[str, Text]] = {"apiVersion": Inline('{{ include "kvtier.attachmentApi" $ }}')}
_ACCOUNT: Final = Inline('{{ include "kvtier.serviceAccountName" $ }}')
_SUBJECT: Final[dict[str, Text]] = {"subjects 0 name": _ACCOUNT}
_PULL_SECRETS: Final = With('include "kvtier.pullSecrets" $ | fromYamlArray')
_POD_SECURITY: Final = With('include "kvtier.podSecurityContext" $ | fromYaml')
_CONTAINER_SECURITY: Final = With('include "kvtier.containerSecurityContext" $ | fromYaml')
_OWN_LABELS: Final = {"labels": "ownLabels", "podLabels": "ownPodLabels"}
_COMMON_ANNOTATIONS: Final = "$.Values.commonAnnotations | default dict"
_POD: Final = "spec template spec"
_ENV: Final = f"{_POD} containers 0 env"
# behind the last variable of the list, at the column of its items
_FURTHER_ENV: Final = """
            {{- $seen := dict }}
            {{- range $.Values.operator.extraEnv }}
            {{- if hasPrefix "KVTIER_" .name }}
            {{- fail (printf "operator.extraEnv: %s is made by other values: remove it" .name) }}
            {{- end }}
            {{- if hasKey $seen .name }}
            {{- fail (printf "operator.extraEnv: %s is there twice: keep one" .name) }}
            {{- end }}
            {{- $_ := set $seen .name true }}
            {{- end }}
            {{- with $.Values.operator.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}"""


def comment(source: str) -> str:
    """The template's first line."""
    return "{{- /* " + notice(source) + " */ -}}\n"


def block(opening: str, body: str) -> str:
    """Helm's blocks: if, with, range, define."""
    return "{{- " + opening + " }}\n" + body + "{{- end }}\n"


def include(name: str) -> str:
    """Lines of a definition, at the column where they begin."""
    return '{{- include "kvtier.' + name + '" $ | nindent {indent} }}'


def definitions(head: str) -> dict[str, str]:
    """File name below templates/ and text."""
    return {
        "_rules.tpl": _rules(head),
        "_policy.tpl": _policy(head),
        "_security.tpl": _security(head),
        "_attachment.tpl": _attachment(head),
    }


def _rules(head: str) -> str:
    election = block("if $.Values.rbac.pickerLeaderElection", rules_text(rights.PICKER_LEADER_ELECTION))
    cost = block("if $.Values.rbac.podDeletionCost", rules_text(rights.DELETION_COST))
    password = block("if $.Values.rbac.storePassword", rules_text(rights.STORE_PASSWORD))
    namespaced = block(
        'define "kvtier.namespacedRules"',
        rules_text((*rights.NAMESPACED, *rights.PICKERS)) + election + cost + password,
    )
    cluster = block('define "kvtier.clusterRules"', rules_text(rights.CLUSTER))
    return f"{head}{namespaced}{cluster}"


def _policy(head: str) -> str:
    """Helm drops a value that is null, and what is not there the operator allows."""
    limits = " ".join(f'"{limit}"' for limit in policy_document(OwnerPolicy()))
    message = (
        "operator.policy.%s: it has no value, which would allow all: write allow or deny "
        "(where helm upgrade --reuse-values kept older values: --reset-then-reuse-values)"
    )
    missing = 'or (not (hasKey $policy .)) (kindIs "invalid" (get $policy .))'
    check = f"{{{{- if {missing} }}}}{{{{ fail (printf {json.dumps(message)} .) }}}}{{{{ end }}}}\n"
    body = "{{- $policy := $.Values.operator.policy | default dict }}\n" + block(
        f"range list {limits}", check
    )
    return head + block('define "kvtier.policy"', body + "{{- $policy | toJson }}\n")


def _attachment(head: str) -> str:
    """The version of the policy's API that is served, empty where none is; and the image that it names."""
    served = " else ".join(
        f'if $.Capabilities.APIVersions.Has "{version}/MutatingAdmissionPolicy" }}}}{version}{{{{'
        for version in POLICY_VERSIONS
    )
    registry = f'{{{{- ($.Values.global).imageRegistry | default "{UNPUBLISHED_REGISTRY}" }}}}/'
    image = (
        '{{- $released := (include "kvtier.released" $ | fromJson).connector }}\n'
        "{{- with ($.Values.images).connector | default $released }}{{ . }}{{ else }}\n"
        f"{registry}{PUBLISHED[ImageName.CONNECTOR]}{{{{ end }}}}\n"
    )
    return (
        head
        + block('define "kvtier.attachmentApi"', f"{{{{- {served}- end }}}}\n")
        + block('define "kvtier.connectorImage"', image)
    )


def _security(head: str) -> str:
    """Security contexts, also with values kept from a release that had none."""
    pod = (
        _context("podSecurityContext", POD_SECURITY)
        + '{{- $mode := $.Values.openshift | default "auto" }}\n'
        + '{{- $there := $.Capabilities.APIVersions.Has "security.openshift.io/v1" }}\n'
        + block(
            'if or (eq $mode "force") (and (eq $mode "auto") $there)',
            '{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}\n',
        )
    )
    container = _context("containerSecurityContext", CONTAINER_SECURITY)
    return (
        head
        + block('define "kvtier.podSecurityContext"', f"{pod}{{{{- $context | toYaml }}}}\n")
        + block('define "kvtier.containerSecurityContext"', f"{container}{{{{- $context | toYaml }}}}\n")
    )


def _context(name: str, otherwise: dict[str, Any]) -> str:
    value = f"$.Values.operator.{name} | default (fromJson {json.dumps(json.dumps(otherwise))})"
    return f"{{{{- $context := {value} }}}}\n"


_NOTICE: Final = comment("operator/kvtier_operator/install")


@dataclass(frozen=True, slots=True)
class _Template:
    """One template."""

    document: dict[str, Any]  # the object of install/
    condition: str = ""  # when it is rendered; empty for always
    texts: dict[str, Text] = field(default_factory=dict)  # places for values, as `yaml_text` takes them
    for_each: str = ""  # a list of the chart's, each element of which (`.`) gets the object in its namespace


def templates() -> dict[str, str]:
    """File name below templates/ and text."""
    texts = {name: _text(template) for name, template in _templates().items()}
    return {**definitions(_NOTICE), "crd.yaml": _crd(), **texts}


def _templates() -> dict[str, _Template]:
    rbac, namespaces = "$.Values.rbac.create", "$.Values.watchNamespaces"
    of_cluster = f"and {rbac} (or (not {namespaces}) $.Values.rbac.clusterReads)"
    return {
        "service_account.yaml": _Template(
            service_account(_INSTALL),
            "$.Values.serviceAccount.create",
            {"metadata name": _ACCOUNT, "metadata annotations": With("$.Values.serviceAccount.annotations")},
        ),
        "cluster_role.yaml": _Template(
            cluster_role(_INSTALL, ()),
            of_cluster,
            {
                "rules": Below(
                    block(f"if not {namespaces}", f"{include('namespacedRules')}\n")
                    + block("if $.Values.rbac.clusterReads", f"{include('clusterRules')}\n")
                )
            },
        ),
        "cluster_role_binding.yaml": _Template(cluster_role_binding(_INSTALL), of_cluster, _SUBJECT),
        "role.yaml": _Template(
            role(_INSTALL, _EACH, ()), rbac, {"rules": Below(include("namespacedRules"))}, for_each=namespaces
        ),
        "role_binding.yaml": _Template(role_binding(_INSTALL, _EACH), rbac, _SUBJECT, for_each=namespaces),
        "role_leader.yaml": _Template(
            leader_role(_INSTALL), rbac, {"rules": Below(rules_text(rights.LEADER_ELECTION))}
        ),
        "role_binding_leader.yaml": _Template(leader_role_binding(_INSTALL), rbac, _SUBJECT),
        "validating_admission_policy.yaml": _Template(admission_policy(_INSTALL), _GUARDED),
        "validating_admission_policy_binding.yaml": _Template(admission_policy_binding(_INSTALL), _GUARDED),
        **{
            f"mutating_admission_policy{end}.yaml": _Template(
                attachment_policy(_INSTALL, delivery=delivery),
                f'and ({_ATTACHES}) (eq "{delivery}" ({_PAYLOAD}))',
                _ATTACHMENT_API,
            )
            for delivery, end in ((Delivery.INIT_CONTAINER, ""), (Delivery.IMAGE_VOLUME, "_image_volume"))
        },
        "mutating_admission_policy_binding.yaml": _Template(
            attachment_policy_binding(_INSTALL), _ATTACHES, _ATTACHMENT_API
        ),
        "cluster_role_view.yaml": _user_role(view_role(_INSTALL)),
        # without the policy a KVCacheTier can do more than `edit` can
        "cluster_role_edit.yaml": _user_role(edit_role(_INSTALL), _GUARDED),
        "service.yaml": _Template(service(_INSTALL)),
        "deployment.yaml": _Template(deployment(_INSTALL), texts=_deployment_texts()),
        "service_monitor.yaml": _Template(
            service_monitor(_INSTALL),
            "$.Values.serviceMonitor.enabled",
            {
                **_elsewhere("serviceMonitor"),
                "spec namespaceSelector": With('dict "matchNames" (list $.Release.Namespace)'),
                "spec endpoints 0 interval": Inline("{{ $.Values.serviceMonitor.interval }}"),
                **{
                    f"spec endpoints 0 {name}": With(f"$.Values.serviceMonitor.{name}")
                    for name in ("scrapeTimeout", "relabelings", "metricRelabelings")
                },
            },
        ),
        "prometheus_rule.yaml": _Template(
            prometheus_rule(_INSTALL),
            "$.Values.prometheusRule.enabled",
            _elsewhere("prometheusRule"),
        ),
        "dashboard.yaml": _Template(
            _as_it_is(dashboard(_INSTALL)),
            # also with values kept from a release that had no such value
            "and $.Values.dashboard $.Values.dashboard.enabled",
            {
                "metadata labels": _labels("$.Values.dashboard.labels"),
                "metadata annotations": With("$.Values.dashboard.annotations"),
            },
        ),
        "pod_disruption_budget.yaml": _Template(
            pod_disruption_budget(_INSTALL), "$.Values.podDisruptionBudget.enabled"
        ),
        "network_policy.yaml": _Template(network_policy(_INSTALL), "$.Values.networkPolicy.enabled"),
        **_of_test(),
    }


def _elsewhere(value: str) -> dict[str, Text]:
    """Of what is read by others: their labels, in their namespace."""
    return {
        "metadata labels": _labels(f"$.Values.{value}.labels"),
        "metadata namespace": Inline(f"{{{{ $.Values.{value}.namespace | default $.Release.Namespace }}}}"),
    }


def _of_test() -> dict[str, _Template]:
    """What `helm test` makes, with labels of its own: the operator's Service is to select its pod alone."""
    place = "spec containers 0 imagePullPolicy"
    values = {name: With(f"$.Values.operator.{name}") for name in ("nodeSelector", "tolerations")}
    texts: dict[str, Text] = {
        place: Inline("{{ $.Values.image.pullPolicy }}"),
        "spec imagePullSecrets": _PULL_SECRETS,
        "spec securityContext": _POD_SECURITY,
        "spec containers 0 securityContext": _CONTAINER_SECURITY,
        **{f"spec {name}": value for name, value in values.items()},
    }
    condition = "and $.Values.rbac.create $.Values.serviceAccount.create"
    return {
        f"test_{name}.yaml": _Template(
            document,
            condition,
            {"metadata labels": _labels(of="testLabels"), **(texts if name == "pod" else {})},
        )
        for name, document in helm_test(_INSTALL).items()
    }


def _as_it_is(config_map: dict[str, Any]) -> dict[str, Any]:
    """With braces that Helm leaves alone: legends of Grafana have them."""
    escaped = {file: text.replace("{{", '{{ "{{" }}') for file, text in config_map["data"].items()}
    return config_map | {"data": escaped}


def _user_role(document: dict[str, Any], also: str = "") -> _Template:
    """With the labels by which Kubernetes' own roles take it in."""
    aggregate = "$.Values.rbac.aggregate"
    condition = f"and {aggregate} ({also})" if also else aggregate
    labels = document["metadata"]["labels"]
    joins = "".join(f'{key}: "{labels[key]}"\n' for key in labels if key.startswith(AGGREGATE))
    return _Template(document, condition, {"metadata labels": Below(f"{include('labels')}\n{joins}")})


def _deployment_texts() -> dict[str, Text]:
    names = [
        variable["name"]
        for variable in deployment(_INSTALL)["spec"]["template"]["spec"]["containers"][0]["env"]
    ]
    environment = {
        "KVTIER_NAMESPACES": '{{ join "," $.Values.watchNamespaces | quote }}',
        "KVTIER_LOG_FORMAT": "{{ $.Values.operator.logFormat }}",
        "KVTIER_LOG_LEVEL": '{{ $.Values.operator.logLevel | default "info" }}',
        "KVTIER_REPOSITORY": "{{ $.Values.image.repository }}",
        "KVTIER_IMAGE_REGISTRY": '{{ ($.Values.global).imageRegistry | default "" | quote }}',
        "KVTIER_IMAGES": '{{ include "kvtier.images" $ | quote }}',
        "KVTIER_MODEL_CONFIGS": '{{ $.Values.operator.modelConfigs | default "none" | quote }}',
        "KVTIER_POLICY": '{{ include "kvtier.policy" $ | quote }}',
        "KVTIER_IMAGE_PULL_SECRETS": '{{ include "kvtier.pullSecretNames" $ | quote }}',
    }
    environment["KVTIER_LEASE_SECONDS"] = (
        f"{{{{ $.Values.operator.leaseSeconds | default {DEFAULT_LEASE_S} | quote }}}}"
    )
    environment[names[-1]] += _FURTHER_ENV
    return {
        "spec replicas": Inline("{{ $.Values.operator.replicas | default 1 }}"),
        "spec strategy": With(
            f"$.Values.operator.strategy | default (fromJson {json.dumps(json.dumps(STRATEGY))})"
        ),
        **{f"{_ENV} {names.index(name)} value": Inline(value) for name, value in environment.items()},
        "spec template metadata labels": _labels("$.Values.operator.podLabels", of="podLabels"),
        "spec template metadata annotations": With("$.Values.operator.podAnnotations"),
        f"{_POD} serviceAccountName": _ACCOUNT,
        f"{_POD} imagePullSecrets": _PULL_SECRETS,
        f"{_POD} priorityClassName": With("$.Values.operator.priorityClassName"),
        f"{_POD} nodeSelector": With("$.Values.operator.nodeSelector"),
        f"{_POD} tolerations": With("$.Values.operator.tolerations"),
        f"{_POD} affinity": With("$.Values.operator.affinity"),
        f"{_POD} topologySpreadConstraints": With("$.Values.operator.topologySpreadConstraints"),
        f"{_POD} volumes": With("$.Values.operator.volumes"),
        f"{_POD} containers 0 volumeMounts": With("$.Values.operator.volumeMounts"),
        f"{_POD} containers 0 imagePullPolicy": Inline("{{ $.Values.image.pullPolicy }}"),
        f"{_POD} containers 0 resources": With("$.Values.operator.resources"),
        f"{_POD} securityContext": _POD_SECURITY,
        f"{_POD} containers 0 securityContext": _CONTAINER_SECURITY,
    }


def _labels(further: str = "", of: str = "labels") -> Below:
    """The chart's labels, before those of a value, before those that all objects have."""
    if not further:
        return Below(include(of))
    own, common = (f'(include "kvtier.{name}" $ | fromYaml)' for name in (_OWN_LABELS[of], "commonLabels"))
    return Below(f"{{{{- merge {own} ({further} | default dict) {common} | toYaml | nindent {{indent}} }}}}")


def _annotated(document: dict[str, Any], texts: Mapping[str, Text]) -> With:
    """An object's own annotations, before those that all have."""
    match texts.get("metadata annotations"):
        case With(value):
            return With(f"merge (dict) ({value} | default dict) ({_COMMON_ANNOTATIONS})")
        case _ if own := document["metadata"].get("annotations"):
            return With(f"merge (fromJson {json.dumps(json.dumps(own))}) ({_COMMON_ANNOTATIONS})")
        case _:
            return With("$.Values.commonAnnotations")


def _text(template: _Template) -> str:
    places = {"metadata labels": _labels(), **template.texts}
    annotations = _annotated(template.document, template.texts)
    body = yaml_text(template.document, places | {"metadata annotations": annotations})
    for literal, expression in _EXPRESSIONS.items():
        body = body.replace(literal, expression)
    if template.for_each:
        body = block(f"range {template.for_each}", "---\n" + body.replace(_EACH, "{{ . }}"))
    if template.condition:
        body = block(f"if {template.condition}", body)
    return _NOTICE + body


def _crd() -> str:
    keep = With('ternary (dict "helm.sh/resource-policy" "keep") (dict) $.Values.crds.keep')
    document = crd()
    annotations = _annotated(document, {"metadata annotations": keep})
    body = yaml_text(document, {"metadata annotations": annotations, "metadata labels": _labels()})
    return f"{comment('operator/kvtier_operator/api')}{block('if $.Values.crds.enabled', body)}"
