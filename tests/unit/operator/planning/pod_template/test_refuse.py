"""What a pod template may not have, each with the field that is named; what it may comes into the pod."""

from typing import Any

import pytest
from tests.cases.planning import resource
from tests.cases.pod_template import TEMPLATE

from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.objects.engine.deployment import engine_deployment, planned_engine_template
from kvtier_operator.planning.objects.gateway.standalone import standalone_objects
from kvtier_operator.planning.objects.picker import picker_deployment
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

ENGINE = {"name": "engine"}
MOUNTS = "containers[engine].volumeMounts"
SIDECAR = {"name": "more", "image": "a/b:1"}
ROOT = {"cpu": {"capacity": "100Gi", "memlock": {"policy": "Require"}}}


def plan(template: object, part: str = "engine", **spec: Any) -> Plan:  # noqa: ANN401 - parts of a spec
    return make_plan(resource(**{part: {"podTemplate": template}, **spec}), Observed())


def problems(template: object, part: str = "engine", **spec: Any) -> list[Problem]:  # noqa: ANN401 - as above
    with pytest.raises(InvalidInputError) as refused:
        plan(template, part, **spec)
    assert all("\n" not in str(problem) for problem in refused.value.problems)
    return [*refused.value.problems]


def of_engine(**fields: object) -> dict[str, Any]:
    return {"containers": [ENGINE | fields]}


def of_sidecar(**fields: object) -> dict[str, Any]:
    return {"containers": [SIDECAR | fields]}


@pytest.mark.parametrize(
    ("pod", "field", "words"),
    [
        (of_engine(args=["--x"]), "containers[engine].args", "spec.engine.extraArgs"),
        (of_engine(command=["x"]), "containers[engine].command", "kvtier plans it"),
        (of_engine(image="a/b:1"), "containers[engine].image", "spec.engine.image"),
        (of_engine(env=[{"name": "A"}]), "containers[engine].env", "spec.engine.env"),
        (of_engine(envFrom=[{}]), "containers[engine].envFrom", "spec.engine.env"),
        (of_engine(resources={"limits": {"memory": "1Gi"}}), "containers[engine].resources", "spec.tiers"),
        (of_engine(lifecycle={}), "containers[engine].lifecycle", "drainSeconds"),
        (of_engine(tty=True), "containers[engine].tty", "the fields here are name, imagePullPolicy"),
        (
            of_engine(volumeMounts=[{"name": "x", "mountPath": "/dev/shm/"}]),  # noqa: S108 - kvtier's own
            "containers[engine].volumeMounts[/dev/shm/]",
            "kvtier's own",
        ),
        *(
            (of_engine(volumeMounts=[{"name": "x", "mountPath": path}]), f"{MOUNTS}[{path}]", "kvtier's own")
            for path in ("//dev/shm", "dev/shm", "/dev/../dev/shm", "/dev/shm/kvtier")  # noqa: S108 - as above
        ),
        (of_engine(ports=[{"containerPort": 8000}]), "containers[engine].ports[8000]", "kvtier's own"),
        ({"initContainers": [{"name": "doctor", "image": "a"}]}, "initContainers[doctor].image", "plans it"),
        ({"volumes": [{"name": "shm", "emptyDir": {}}]}, "volumes[shm]", "kvtier's own"),
        ({"initContainers": [SIDECAR | {"name": "engine"}]}, "initContainers[engine]", "take another name"),
        ({"containers": [SIDECAR | {"name": "doctor"}]}, "containers[doctor]", "take another name"),
        ({"terminationGracePeriodSeconds": 1}, "terminationGracePeriodSeconds", "spec.engine.drainSeconds"),
        ({"resources": {}}, "resources", "kvtier plans"),
        (
            of_sidecar(resources={"limits": {"hugepages-2Mi": "64Mi"}}),
            "containers[more].resources.limits[hugepages-2Mi]",
            "spec.tiers.cpu.hugepages",
        ),
        # power over the node
        ({"hostNetwork": True}, "hostNetwork", "more of its node"),
        ({"hostPID": True}, "hostPID", "more of its node"),
        ({"hostIPC": False}, "hostIPC", "more of its node"),
        ({"hostUsers": False}, "hostUsers", "the node's own users"),
        ({"nodeName": "a"}, "nodeName", "the scheduler"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "volumes[x].hostPath", "there is a right"),
        ({"volumes": [{"name": "x", "nfs": {}}]}, "volumes[x].nfs", "the fields here are name, configMap"),
        (
            {"volumes": [{"name": "x", "emptyDir": {"medium": "HugePages-2Mi"}}]},
            "volumes[x].emptyDir.medium",
            "spec.tiers.cpu.hugepages",
        ),
        (
            of_sidecar(ports=[{"containerPort": 1, "hostPort": 1}]),
            "containers[more].ports[1].hostPort",
            "node",
        ),
        (
            of_sidecar(securityContext={"privileged": True}),
            "containers[more].securityContext.privileged",
            "more of its node",
        ),
        (
            of_sidecar(securityContext={"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}),
            "containers[more].securityContext.capabilities.add[1]",
            "write AUDIT_WRITE or",
        ),
        (
            of_sidecar(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            "containers[more].securityContext.seccompProfile.type",
            "RuntimeDefault or Localhost",
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
            "securityContext.appArmorProfile.type",
            "RuntimeDefault or Localhost",
        ),
        (
            {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
            "securityContext.seLinuxOptions.type",
            "",
        ),
        ({"securityContext": {"sysctls": []}}, "securityContext.sysctls", "more of its node"),
        (
            of_sidecar(livenessProbe={"httpGet": {"port": 1, "host": "169.254.169.254"}}),
            "containers[more].livenessProbe.httpGet.host",
            "the node's network",
        ),
        (
            of_sidecar(lifecycle={"preStop": {"tcpSocket": {"port": 1, "host": "a"}}}),
            "containers[more].lifecycle.preStop.tcpSocket.host",
            "the node's network",
        ),
        (
            of_sidecar(volumeMounts=[{"name": "a", "mountPath": "/a", "mountPropagation": "Bidirectional"}]),
            "containers[more].volumeMounts[/a].mountPropagation",
            "more of its node",
        ),
        # of the wrong form
        ({"containers": {}}, "containers", "expected a list, not a mapping"),
        ({"containers": ["x"]}, "containers[0]", "needs a name"),
        ({"containers": [{"image": "x"}]}, "containers[0]", "needs a name"),
        ({"containers": [SIDECAR, SIDECAR]}, "containers[more]", "twice"),
        ({"containers": [{"name": "vllm"}]}, "containers[vllm].image", "is required; kvtier's own is engine"),
        ({"nodeSelector": {"a": True}}, "nodeSelector[a]", "expected text, not true or false"),
        ({"tolerations": ["a"]}, "tolerations[0]", "expected a mapping, not text"),
        ({"tolerations": {}}, "tolerations", "expected a list"),
        ({"tolerations": [None]}, "tolerations[0]", "expected a mapping, not nothing"),
        (
            of_engine(startupProbe={"periodSeconds": 0}),
            "containers[engine].startupProbe.periodSeconds",
            "1 or",
        ),
        ({"schedulerName": 1}, "schedulerName", "expected text, not a whole number"),
        ({"schedulerName": ""}, "schedulerName", "is empty; write a value, or leave it out"),
        (of_engine(imagePullPolicy=""), "containers[engine].imagePullPolicy", "is empty"),
        (of_sidecar(image=""), "containers[more].image", "is empty"),
        (
            of_sidecar(ports=[{"containerPort": 1, "protocol": ""}]),
            "containers[more].ports[1].protocol",
            "is empty",
        ),
        (
            of_sidecar(livenessProbe={"httpGet": {"port": 1, "path": ""}}),
            "containers[more].livenessProbe.httpGet.path",
            "is empty",
        ),
        (
            {"volumes": [{"name": "x", "image": {"reference": "a/b:1", "pullPolicy": ""}}]},
            "volumes[x].image.pullPolicy",
            "is empty",
        ),
        ({"priorityClasName": "a"}, "priorityClasName", "did you mean priorityClassName?"),
        ({"hostname": "a"}, "hostname", "the fields here are"),
        (
            of_sidecar(resources={"requests": {"cpu": "lots"}}),
            "containers[more].resources.requests[cpu]",
            "is not a quantity",
        ),
        (
            of_sidecar(resources={"requests": {"cpu": 0.5}}),
            "containers[more].resources.requests[cpu]",
            "quote it",
        ),
        (
            {"volumes": [{"name": "x", "persistentVolumeClaim": {}}]},
            "volumes[x].persistentVolumeClaim.claimName",
            "is required",
        ),
        (
            {"volumes": [{"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            "volumes[x].ephemeral.volumeClaimTemplate.spec.resources",
            "is required",
        ),
        (
            {"containers": [ENGINE | {"$patch": "delete"}]},
            "containers[engine].$patch",
            "takes no directive here",
        ),
        ({"securityContext": {"$patch": "delete"}}, "securityContext.$patch", "but $patch: replace"),
        ({"$patch": "replace"}, "$patch", "takes no directive here"),
        ({"$setElementOrder/containers": []}, "$setElementOrder/containers", "takes no directive here"),
        ({"nodeSelector": {"$patch": "replace"}}, "nodeSelector.$patch", "takes no directive here"),
    ],
)
def test_what_is_refused_of_the_engines(pod: dict[str, Any], field: str, words: str) -> None:
    [problem] = problems({"spec": pod})
    assert problem.field == f"spec.engine.podTemplate.spec.{field}"
    assert words in problem.message


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"kind": "Pod"}, "kind"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
        (
            {"metadata": {"labels": {"app.kubernetes.io/instance": "x"}}},
            "metadata.labels[app.kubernetes.io/instance]",
        ),
        ({"metadata": {"labels": {"n": 1}}}, "metadata.labels[n]"),
        ({"metadata": {"labels": {"$patch": "replace"}}}, "metadata.labels.$patch"),
        ({"metadata": {"annotations": {"$patch": "replace"}}}, "metadata.annotations.$patch"),
        (
            {"metadata": {"annotations": {"kvtier.dev/config-hash": "x"}}},
            "metadata.annotations[kvtier.dev/config-hash]",
        ),
        (
            {
                "metadata": {
                    "annotations": {"container.apparmor.security.beta.kubernetes.io/engine": "unconfined"}
                }
            },
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/engine]",
        ),
        ({"spec": []}, "spec"),
    ],
)
def test_what_is_refused_beside_the_spec(template: dict[str, Any], field: str) -> None:
    [problem] = problems(template)
    assert problem.field == f"spec.engine.podTemplate.{field}"


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"serviceAccountName": "x"}, "serviceAccountName"),
        ({"automountServiceAccountToken": False}, "automountServiceAccountToken"),
        ({"containers": [{"name": "picker", "args": []}]}, "containers[picker].args"),
        (
            {"containers": [{"name": "picker", "env": [{"name": "POD_NAME"}]}]},
            "containers[picker].env[POD_NAME]",
        ),
        ({"volumes": [{"name": "config"}]}, "volumes[config]"),
    ],
)
def test_what_is_refused_of_the_picker(pod: dict[str, Any], field: str) -> None:
    [problem] = problems({"spec": pod}, "router")
    assert problem.field == f"spec.router.podTemplate.spec.{field}"


def with_gateway(template: object) -> dict[str, Any]:
    """A router whose own gateway has a template, and a model router beside Envoy."""
    models = [{"name": "m", "resource": "other"}]
    return {"gateway": {"provider": "standalone", "standalone": {"models": models, "podTemplate": template}}}


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"containers": [{"name": "gateway", "args": []}]}, "containers[gateway].args"),
        ({"containers": [{"name": "model-router"}]}, "containers[model-router]"),
        ({"initContainers": [{"name": "model-router", "image": "a"}]}, "initContainers[model-router].image"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "volumes[v].hostPath"),
        ({"hostNetwork": True}, "hostNetwork"),
    ],
)
def test_what_is_refused_of_the_gateway(pod: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        make_plan(resource(router=with_gateway({"spec": pod})), Observed())
    [problem] = refused.value.problems
    assert problem.field == f"spec.router.gateway.standalone.podTemplate.spec.{field}"


def test_what_the_gateway_may_have_comes_into_its_pods_alone() -> None:
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"serviceAccountName": "mesh"}}
    planned = make_plan(resource(router=with_gateway(template)), Observed())
    [gateway] = [each for each in standalone_objects(planned) if each["kind"] == "Deployment"]
    pods = gateway["spec"]["template"]
    assert (pods["metadata"]["labels"]["team"], pods["spec"]["serviceAccountName"]) == ("a", "mesh")
    for other in (engine_deployment(planned), picker_deployment(planned)):
        assert "team" not in other["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("pod", [{"securityContext": {}}, of_engine(securityContext={"runAsUser": 5})])
def test_who_a_root_engine_runs_as_is_planned(pod: dict[str, Any]) -> None:
    [problem] = problems({"spec": pod}, tiers=ROOT)
    assert problem.field.endswith(".securityContext")
    assert "spec.tiers.cpu.memlock" in problem.message
    plan({"spec": of_sidecar(securityContext={"runAsUser": 5})}, tiers=ROOT)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = problems({"spec": {"hostNetwork": True, **of_engine(args=[], image="x")}, "kind": "Pod"})
    assert len(found) == 4


def test_what_is_taken_comes_into_the_pod() -> None:
    made = plan(TEMPLATE)
    built, planned = engine_deployment(made)["spec"], planned_engine_template(made)
    template = built["template"]
    assert template["metadata"]["labels"] == planned["metadata"]["labels"] | {"team": "search"}
    assert built["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    spec = template["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert [container["name"] for container in spec["containers"]] == ["engine", "more"]
    assert [container["name"] for container in spec["initContainers"]] == [
        "kvtier-payload",
        "doctor",
        "before",
    ]
    probe = planned["spec"]["containers"][0]["startupProbe"]
    assert spec["containers"][0] == planned["spec"]["containers"][0] | {
        "startupProbe": probe | {"periodSeconds": 7, "initialDelaySeconds": 0}
    }
    assert len(spec["topologySpreadConstraints"]) == 2  # ours beside it
    assert spec["serviceAccountName"] == "reader"
    assert spec["volumes"] == [*planned["spec"]["volumes"], *TEMPLATE["spec"]["volumes"]]


def test_the_report_tells_what_is_not_in_the_budget() -> None:
    assert "adds before, more: what they request comes on top" in plan(TEMPLATE).notes[-1]
    assert "podTemplate" not in str(plan({}).notes)


def test_the_pickers_too() -> None:
    env = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]
    made = plan({"spec": {"containers": [{"name": "picker", "env": env}]}}, "router")
    [picker] = picker_deployment(made)["spec"]["template"]["spec"]["containers"]
    assert picker["env"][-1] == env[0]


def test_no_template_changes_nothing() -> None:
    assert engine_deployment(plan({})) == engine_deployment(plan(None))
