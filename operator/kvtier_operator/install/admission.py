"""What a KVCacheTier has the operator do that its author may not be allowed to: each with the right it takes.

The one source of the admission policy and of the table in the docs. A right is the one to make the object by
oneself, or the verb `use` on a subresource of KVCacheTiers that exists for this alone.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.resource import GROUP, VERSION
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.settings import Installation

_PODS: Final = (
    *("model", "backend", "engine", "attach", "tiers"),
    *("prefixes", "prefixesWithin", "tenants", "imagePullSecrets"),
)
"""Fields of the spec that decide what runs in an engine's pod, and whose pods those are."""


@dataclass(frozen=True, slots=True)
class Privilege:
    """One thing that the admission policy refuses unless the author has a right to it."""

    id: str  # row of the table in the docs, and of its test
    name: str  # subresource of kvcachetiers; the verb `use` on it allows it
    field: str  # path of the field that asks for it
    requested: str  # CEL over `object.spec`: whether the resource asks for it
    changed: str  # CEL: whether an update has to be justified, where the resource asks for it
    what: str  # what it is, for the message and the docs
    # an object, `resource.group`, whose creation rights justify it as well; empty where there is none. No
    # more than one: the API server gives one expression two questions to the authorizer, and cancels it at
    # the third.
    creatable: str = ""
    alternative: str = ""  # what to write in its place; empty where there is nothing
    # fields of the spec, with `.?` between, whose changes have to be justified as well
    also_protected: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """CEL: whether the author of the request has the right."""
        used = _may(f"group('kvtier.dev').resource('kvcachetiers').subresource('{self.name}')", "use")
        if not self.creatable:
            return used
        resource, _, group = self.creatable.partition(".")
        creatable = _may(f"group('{group}').resource('{resource}')", "create")
        return f"{used} || {creatable}"

    @property
    def expression(self) -> str:
        """CEL: whether the request passes."""
        changed = f"(request.operation == 'CREATE' || {self.changed})"
        return f"!({self.requested}) || !{changed} || {self.allowed}"

    @property
    def message(self) -> str:
        """One line: what, where, and what to do."""
        write = f"write {self.alternative}, or " if self.alternative else ""
        return f"{self.field}: {self.what} is more than you may do here; {write}{self._right}"

    @property
    def message_expression(self) -> str:
        """CEL: the message; where the field was there before, it says what was changed and that it may stay.

        Empty where the field is the whole spec.
        """
        if self.field == "spec":
            return ""
        what, where = self.what.rstrip(","), self.field.removeprefix("spec.").replace(".", ".?")
        leave = f"leave it as it was, or {self._right}"
        own = f"{self.field}: {what} is more than you may change here; {leave}"
        also_protected = (
            f": this resource has {what} ({self.field}), and only who may have that may change this as well; "
            f"{leave}"
        )
        changed = [f"{_differs(path)} ? 'spec.{path.replace('?', '')}' : ''" for path in self.also_protected]
        listed = f"[{', '.join(changed)}].filter(each, each != '').join(', ')"
        return (
            f"request.operation == 'CREATE' || ({_differs(where)} && !({_before(self.requested)})) "
            f"? {json.dumps(self.message)} : {_differs(where)} ? {json.dumps(own)} "
            f": {listed} + {json.dumps(also_protected)}"
        )

    @property
    def _right(self) -> str:
        by_itself = f"'create' on {self.creatable}, or " if self.creatable else ""
        return (
            f"have the cluster's owner give you {by_itself}'use' on kvcachetiers.kvtier.dev/{self.name} "
            "in this namespace"
        )


def _may(resource: str, verb: str) -> str:
    return f"authorizer.{resource}.namespace(request.namespace).check('{verb}').allowed()"


def _before(expression: str) -> str:
    """CEL: the same of the object before the update."""
    return expression.replace("object.", "oldObject.")


def _differs(*fields: str) -> str:
    """CEL: whether any of these fields of the spec changes."""
    return f"({' || '.join(f'object.spec.?{field} != oldObject.spec.?{field}' for field in fields)})"


_GATEWAY: Final = "object.spec.?router.?gateway"
_PROVIDER: Final = f"{_GATEWAY}.?provider.orValue('none')"
_NAMESPACE: Final = f"{_GATEWAY}.?parentRef.?namespace.orValue(request.namespace)"
_SCRAPED: Final = "object.spec.?observability.?serviceMonitor.orValue(false)"
_ENGINE: Final = _differs(*_PODS)
_ROUTE: Final = _differs("router.?gateway")
_WAS: Final = _before(_PROVIDER)
_OF_MONITORS: Final = [f"observability.?{field}" for field in ("serviceMonitor", "labels", "intervalSeconds")]
_SCRAPING: Final = f"{_differs(*_OF_MONITORS)} || ({_PROVIDER} == 'gke') != ({_WAS} == 'gke')"
"""Which of two objects it is depends on the provider being gke."""
_BESIDE_ROUTE: Final = ("router.?gateway",)
_ROUTES: Final = "httproutes.gateway.networking.k8s.io"
_NO_ROUTE: Final = "no gateway and bring a route that its owner makes"


def _host_path(row: str, field: str, requested: str) -> Privilege:
    # any change of what runs: with another image somebody else would be root in that folder
    what, alternative = "a folder of the node, in a container that is root,", "emptyDir, ephemeral or a claim"
    return Privilege(
        row, "hostpath", field, requested, _ENGINE, what, alternative=alternative, also_protected=_PODS
    )


def _pod_template(row: str, part: str, what: str, protected: tuple[str, ...]) -> Privilege:
    # any change of what runs: with another image somebody else would have that service account
    requested = f"object.spec.?{part}.?podTemplate.hasValue()"
    return Privilege(
        *(row, "podtemplates", f"spec.{part.replace('?', '')}.podTemplate", requested, _differs(*protected)),
        *(f"{what} of one's choice,", "deployments.apps"),
        also_protected=protected,
    )


def _on_provider(row: str, provider: str, what: str, creatable: str) -> Privilege:
    field, requested = "spec.router.gateway.provider", f"{_PROVIDER} == '{provider}'"
    return Privilege(row, "routes", field, requested, _ROUTE, what, creatable, _NO_ROUTE, _BESIDE_ROUTE)


PRIVILEGES: Final = (
    Privilege(
        *("pods", "workloads", "spec", "true", _differs(*_PODS, "router", "observability.?tracing")),
        "pods with images, arguments and Secrets of one's choice",
        "deployments.apps",
    ),
    _pod_template("engine-template", "engine", "containers, volumes and a service account", _PODS),
    _pod_template("picker-template", "router", "containers and volumes", ("router",)),
    _pod_template(
        "gateway-template",
        "router.?gateway.?standalone",
        "containers, volumes and a service account",
        ("router",),
    ),
    Privilege(
        *("attach", "attachments", "spec.attach", "object.spec.?attach.hasValue()", _differs(*_PODS)),
        "memory, variables and an init container in pods that others own",
        "pods",
        also_protected=_PODS,
    ),
    Privilege(
        *("scaled-object", "autoscalers", "spec.autoscaling.prometheusUrl"),
        "object.spec.?autoscaling.?prometheusUrl.hasValue()",
        _differs("autoscaling.?prometheusUrl", "autoscaling.?prometheus"),
        "a ScaledObject, by which KEDA asks an address of one's choice with credentials of one's choice,",
        "scaledobjects.keda.sh",
        "no prometheusUrl, for a HorizontalPodAutoscaler",
    ),
    _host_path(
        "host-path-model", "spec.model.volume.hostPath", "object.spec.?model.?volume.?hostPath.hasValue()"
    ),
    Privilege(
        *("host-path-source", "hostpath", "spec.model.source"),
        "object.spec.?model.?source.orValue('').startsWith('file://')",
        _ENGINE,
        "a folder of the node, for reading,",
        alternative="pvc:// with a claim",
        also_protected=_PODS,
    ),
    _host_path(
        "host-path-disk",
        "spec.tiers.disk.volume.hostPath",
        "object.spec.?tiers.?disk.?volume.?hostPath.hasValue()",
    ),
    _host_path(
        "host-path-disks",
        "spec.tiers.disk.extraVolumes",
        "object.spec.?tiers.?disk.?extraVolumes.orValue([]).exists(each, has(each.hostPath))",
    ),
    Privilege(
        *("ipc-lock", "ipclock", "spec.tiers.cpu.memlock.policy"),
        "object.spec.?tiers.?cpu.?memlock.?policy.orValue('') == 'Require'",
        _ENGINE,
        "Require, a container that is root with IPC_LOCK,",
        alternative="Prefer",
        also_protected=_PODS,
    ),
    Privilege(
        *("route", "routes", "spec.router.gateway", f"{_GATEWAY}.?parentRef.hasValue()", _ROUTE),
        "an HTTPRoute with host names of one's choice",
        _ROUTES,
        _NO_ROUTE,
    ),
    Privilege(
        *("foreign-gateway", "foreigngateways", "spec.router.gateway.parentRef.namespace"),
        f"{_NAMESPACE} != request.namespace",
        _ROUTE,
        "a route on a Gateway of another namespace",
        _ROUTES,
        "a Gateway of the resource's own namespace",
        _BESIDE_ROUTE,
    ),
    _on_provider("istio-rule", "istio", "istio's DestinationRule", "destinationrules.networking.istio.io"),
    _on_provider("gke-policy", "gke", "gke's GCPBackendPolicy", "gcpbackendpolicies.networking.gke.io"),
    _on_provider(
        "gke-health-check", "gke", "gke's HealthCheckPolicy", "healthcheckpolicies.networking.gke.io"
    ),
    Privilege(
        *("service-monitor", "monitoring", "spec.observability.serviceMonitor"),
        f"{_SCRAPED} && {_PROVIDER} != 'gke'",
        _SCRAPING,
        "a ServiceMonitor",
        "servicemonitors.monitoring.coreos.com",
        "false",
        _BESIDE_ROUTE,
    ),
    Privilege(
        *("pod-monitoring", "monitoring", "spec.observability.serviceMonitor"),
        f"{_SCRAPED} && {_PROVIDER} == 'gke'",
        _SCRAPING,
        "a PodMonitoring",
        "podmonitorings.monitoring.googleapis.com",
        "false",
        _BESIDE_ROUTE,
    ),
    Privilege(
        *("prometheus-rule", "monitoring", "spec.observability.prometheusRule"),
        "object.spec.?observability.?prometheusRule.orValue(false)",
        _differs("observability.?prometheusRule", "observability.?labels"),
        "a PrometheusRule",
        "prometheusrules.monitoring.coreos.com",
        "false",
    ),
)
"""In the order of a resource's fields. `edit` has none of these rights but that of Deployments."""


_API: Final = "admissionregistration.k8s.io/v1"


def admission_policy(install: Installation) -> dict[str, Any]:
    """Checks creations and updates of the resource itself, not of its subresources status and scale.

    An update that changes none of the protected fields passes, such as one of a label or a finalizer.
    """
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": install.cluster_metadata(),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [PLURAL],
                    }
                ]
            },
            "validations": [_validation(privilege) for privilege in PRIVILEGES],
        },
    }


def _validation(privilege: Privilege) -> dict[str, str]:
    """The API server falls back to the message where its expression fails."""
    by_expression = {"messageExpression": expression} if (expression := privilege.message_expression) else {}
    return {
        "expression": privilege.expression,
        "message": privilege.message,
        **by_expression,
        "reason": "Forbidden",
    }


def admission_policy_binding(install: Installation) -> dict[str, Any]:
    """In every namespace: also one that this operator does not serve may be another's."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": install.cluster_metadata(),
        "spec": {"policyName": install.name, "validationActions": ["Deny"]},
    }
