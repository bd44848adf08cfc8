"""The chart's named templates: rights, the owner's limits, security contexts."""

import json
from typing import Any

from kvtier_operator.generate.chart.helm import block
from kvtier_operator.generate.rules_text import rules_text
from kvtier_operator.install import rbac
from kvtier_operator.install.deployment import CONTAINER_SECURITY, POD_SECURITY
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document


def definitions(head: str) -> dict[str, str]:
    """File name below templates/ and text.

    Args:
        head: First line of each.
    """
    return {"_rules.tpl": _rules(head), "_policy.tpl": _policy(head), "_security.tpl": _security(head)}


def _rules(head: str) -> str:
    election = block("if $.Values.rbac.pickerLeaderElection", rules_text(rbac.PICKER_LEADER_ELECTION))
    cost = block("if $.Values.rbac.podDeletionCost", rules_text(rbac.DELETION_COST))
    namespaced = block(
        'define "kvtier.namespacedRules"', rules_text((*rbac.NAMESPACED, *rbac.PICKERS)) + election + cost
    )
    cluster = block('define "kvtier.clusterRules"', rules_text(rbac.CLUSTER))
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


def _security(head: str) -> str:
    """Security contexts, also with values kept from a release that had none."""
    pod = (
        _given("podSecurityContext", POD_SECURITY)
        + '{{- $mode := $.Values.openshift | default "auto" }}\n'
        + '{{- $there := $.Capabilities.APIVersions.Has "security.openshift.io/v1" }}\n'
        + block(
            'if or (eq $mode "force") (and (eq $mode "auto") $there)',
            '{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}\n',
        )
    )
    container = _given("containerSecurityContext", CONTAINER_SECURITY)
    return (
        head
        + block('define "kvtier.podSecurityContext"', f"{pod}{{{{- $context | toYaml }}}}\n")
        + block('define "kvtier.containerSecurityContext"', f"{container}{{{{- $context | toYaml }}}}\n")
    )


def _given(name: str, otherwise: dict[str, Any]) -> str:
    given = f"$.Values.operator.{name} | default (fromJson {json.dumps(json.dumps(otherwise))})"
    return f"{{{{- $context := {given} }}}}\n"
