"""Owners' objects with the tiers in their pods: which pods are selected, and what is said of them."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import jsonpatch
import pytest
from tests.cases.attached import IMAGE, LABELS, attach_plan, vllm_pod

from kvtier_operator.planning.attach.documents import AttachedDocument, attach_document
from kvtier_operator.planning.attach.left_alone import Reason
from kvtier_operator.planning.attach.patch import json_patch, kustomize_patches

_ROLES = {"llm-d.ai/role": "prefill", "app.kubernetes.io/name": "qwen"}
_POD = vllm_pod()
_SERVICE = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "qwen", "namespace": "default"},
    "spec": {"template": _POD["spec"], "prefill": {"template": _POD["spec"]}},
}


def _object(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "qwen"}, "spec": spec}


def _attached(document: Mapping[str, Any], **plan: Any) -> AttachedDocument:  # noqa: ANN401 - as of attach_plan
    return attach_document([attach_plan(**plan)], document, IMAGE)


def _fields(attached: AttachedDocument) -> list[str]:
    return [outcome.field for outcome in attached.outcomes if outcome.attached_to == "qwen"]


def _remarks(**container: Any) -> list[str]:  # noqa: ANN401 - as of vllm_pod
    pod = {"kind": "Pod", "metadata": {"labels": LABELS}, "spec": vllm_pod(**container)["spec"]}
    return [remark for outcome in _attached(pod).outcomes for remark in outcome.remarks]


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"kind": "Pod", **_POD}, ["spec"]),
        (_object("Deployment", {"template": _POD}), ["spec.template.spec"]),
        (_object("StatefulSet", {"template": _POD}), ["spec.template.spec"]),
        (_object("Rollout", {"template": _POD}), ["spec.template.spec"]),
        (
            _object("CronJob", {"jobTemplate": {"spec": {"template": _POD}}}),
            ["spec.jobTemplate.spec.template.spec"],
        ),
        (
            _object(
                "LeaderWorkerSet", {"leaderWorkerTemplate": {"leaderTemplate": _POD, "workerTemplate": _POD}}
            ),
            [
                "spec.leaderWorkerTemplate.leaderTemplate.spec",
                "spec.leaderWorkerTemplate.workerTemplate.spec",
            ],
        ),
        (_object("LeaderWorkerSet", {"leaderWorkerTemplate": {}}), []),
        (_object("Deployment", {"template": {"spec": _POD["spec"]}}), []),
        (_object("Deployment", {}), []),
        (_object("StormService", {"template": _POD}), []),
    ],
)
def test_pods_of_each_kind(document: dict[str, Any], fields: list[str]) -> None:
    attached = _attached(document)
    assert _fields(attached) == fields
    assert (attached.document == document) is not bool(fields)


def test_a_role_s_labels_select_its_pods_alone() -> None:
    attached = _attached(_SERVICE, labels=_ROLES)
    assert _fields(attached) == ["spec.prefill.template"]
    spec = attached.document["spec"]
    assert spec["template"] == _SERVICE["spec"]["template"]  # type: ignore[index]
    assert spec["prefill"]["annotations"] == {"kvtier.dev/attached": "qwen"}
    assert "annotations" not in spec


def test_a_service_s_own_fields_go_into_the_container_of_kserve_s_presets() -> None:
    service = {**_SERVICE, "spec": {"model": {"uri": "hf://Qwen/Qwen3-32B"}}}
    attached = _attached(service, labels={"llm-d.ai/role": "both"})
    [engine] = attached.document["spec"]["template"]["containers"]
    assert engine["name"] == "main"
    assert engine.keys() == {"name", "env", "volumeMounts"}
    memory, image = attached.outcomes[0].remarks
    assert memory.startswith(
        "container main asks for no memory here; if its preset does, set memory here too"
    )
    assert image.startswith("no image is named here: the preset's must have vLLM 0.32 or 0.33")


def test_a_service_that_offloads_by_itself_has_a_connector() -> None:
    service = {**_SERVICE, "spec": {"kvCacheOffloading": {"cpu": "40Gi"}}}
    attached = _attached(service, labels={"llm-d.ai/role": "both"})
    assert attached.document == service
    assert "kvCacheOffloading" in attached.outcomes[0].remarks[0]


def test_workers_of_a_service_have_labels_of_their_own() -> None:
    spec = {"template": _POD["spec"], "worker": _POD["spec"]}
    service = {**_SERVICE, "spec": spec}
    assert _fields(_attached(service, labels={"app.kubernetes.io/name": "qwen"})) == [
        "spec.template",
        "spec.worker",
    ]
    assert _fields(_attached(service, labels={"llm-d.ai/role": "both"})) == ["spec.template"]
    component = {"app.kubernetes.io/component": "llminferenceservice-workload-worker"}
    assert _fields(_attached(service, labels=component)) == ["spec.worker"]


def test_pods_that_two_resources_select_are_left_alone() -> None:
    document = _object("Deployment", {"template": _POD})
    attached = attach_document([attach_plan(), attach_plan(name="other")], document, IMAGE)
    assert attached.document == document
    [remark] = attached.outcomes[0].remarks
    assert remark == "left alone: KVCacheTiers qwen and other select it: have one select it (SeveralTiers)"


def test_pods_of_a_set_by_the_label_that_its_controller_adds() -> None:
    templates = {"leaderTemplate": _POD, "workerTemplate": _POD}
    document = _object("LeaderWorkerSet", {"leaderWorkerTemplate": templates})
    found = _fields(_attached(document, labels={"leaderworkerset.sigs.k8s.io/name": "qwen"}))
    assert found == [f"spec.leaderWorkerTemplate.{template}.spec" for template in templates]


def test_pods_of_another_namespace_are_not_selected() -> None:
    document = _object("Deployment", {"template": _POD})
    document["metadata"]["namespace"] = "other"
    attached = _attached(document)
    assert _fields(attached) == []
    [remark] = attached.outcomes[0].remarks
    assert remark == "KVCacheTier qwen selects these pods, but is in namespace default"


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"command": ["vllm", "serve", "m", "--no-enable-prefix-caching"]}, Reason.NO_PREFIX_CACHING),
        (
            {
                "args": [
                    'eval "vllm serve m --kv-transfer-config \'{\\"kv_connector\\":\\"NixlConnector\\"}\'"'
                ]
            },
            Reason.HAS_CONNECTOR,
        ),
        ({"args": ["m", "--kv-transfer-config.kv_connector=MultiConnector"]}, Reason.HAS_CONNECTOR),
        ({"args": ["m", "--kv_offloading_size=4"]}, Reason.HAS_CONNECTOR),
        (
            {
                "command": [
                    "bash",
                    "-c",
                    'MORE="--kv-transfer-config \'{}\'"\neval "exec vllm serve m ${MORE}"',
                ]
            },
            Reason.HAS_CONNECTOR,
        ),
        (
            {"env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": "--max-num-seqs 8 -pp 2"}]},
            Reason.PIPELINE_PARALLEL,
        ),
        ({"args": ["m", "--nnodes", "2"]}, Reason.SEVERAL_NODES),
        ({"args": ["m", "--distributed-executor-backend=ray"]}, Reason.UNKNOWN_EXECUTOR),
        ({"args": ["m", "--distributed-executor-backend", "team.Own"]}, Reason.UNKNOWN_EXECUTOR),
        ({"args": ["m", "-dpb", "ray"]}, Reason.UNKNOWN_EXECUTOR),
        ({"command": ["sh", "-c", "/usr/bin/ray start --address=$HEAD --block"]}, Reason.UNKNOWN_EXECUTOR),
        ({"command": ["lmcache_server", "::", "65432"]}, Reason.NO_ENGINE),
        ({"args": ["m", "--data-parallel-multi-port-external-lb"]}, Reason.SEVERAL_SERVERS),
        ({"image": "vllm/vllm-openai:v0.31.0"}, Reason.UNKNOWN_VERSION),
        ({"image": "vllm/vllm-openai-rocm:v0.33.0"}, Reason.UNKNOWN_DEVICE),
        ({"resources": {"limits": {"memory": "64Gi", "amd.com/gpu": "2"}}}, Reason.UNKNOWN_DEVICE),
    ],
)
def test_an_engine_that_would_leave_itself_alone_is(container: dict[str, Any], said: Reason) -> None:
    [remark] = _remarks(**container)
    assert remark.startswith("left alone: ")
    assert remark.endswith(f"({said})")


@pytest.mark.parametrize(
    "script",
    [
        "ray start --head & vllm serve m",
        "ray start --head; python serve.py",
        "lmcache_server & /opt/vllm serve m",
    ],
)
def test_an_engine_beside_another_program_is_one(script: str) -> None:
    document = {"kind": "Pod", **vllm_pod(command=["sh", "-c", script])}
    assert _fields(_attached(document)) == ["spec"]


@pytest.mark.parametrize(
    ("container", "served"),
    [
        ({"command": ["vllm", "serve"], "args": ["Qwen/Qwen3-8B", "--port", "8000"]}, "Qwen/Qwen3-8B"),
        ({"command": ["sh", "-c", "exec vllm serve Qwen/Qwen3-8B --port 80"]}, "Qwen/Qwen3-8B"),
        ({"command": None, "args": ["Qwen/Qwen3-8B"]}, "Qwen/Qwen3-8B"),
        ({"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model=Qwen/Qwen3-8B"]}, "Qwen/Qwen3-8B"),
        ({"args": ["--served-model-name", "chat", "Qwen/Qwen3-8B"]}, "Qwen/Qwen3-8B"),
        ({"command": ["vllm", "serve", "/mnt/models"], "args": ["--served-model-name", "chat"]}, ""),
        ({"command": ["sh", "-c", "vllm serve $MODEL"]}, ""),
        ({"command": ["vllm", "serve", "/mnt/models", "--served-model-name=qwen/qwen3-32b"]}, ""),
        ({"command": ["python3", "serve.py"], "args": ["any/word"]}, ""),
    ],
)
def test_a_pod_of_another_model_is_told(container: dict[str, Any], served: str) -> None:
    document = {"kind": "Pod", **vllm_pod(**container)}
    remarks = _attached(document, model="Qwen/Qwen3-32B").outcomes[0].remarks
    told = [remark for remark in remarks if "spec.model.name" in remark]
    line = "it serves {}, and spec.model.name is Qwen/Qwen3-32B, for which sizes are planned: write the same"
    assert told == ([line.format(served)] if served else [])


@pytest.mark.parametrize(("uri", "count"), [("hf://Qwen/Qwen3-8B", 1), ("hf://Qwen/Qwen3-32B", 0)])
def test_a_service_of_another_model_is_told(uri: str, count: int) -> None:
    service = {**_SERVICE, "spec": {"model": {"uri": uri, "name": "chat"}}}
    remarks = _attached(service, labels={"llm-d.ai/role": "both"}, model="Qwen/Qwen3-32B").outcomes[0].remarks
    assert sum("spec.model.name" in remark for remark in remarks) == count


def test_what_is_given_and_what_is_not_known_is_said() -> None:
    [memory] = _remarks()
    assert memory.startswith("101.15 GiB of memory more: CPU tier 100 GiB, index of the CPU tier ")
    image = "ghcr.io/llm-d/llm-d-cuda:v0.4.0"
    assert _remarks(image=image)[1].startswith(f"image {image} does not tell its vLLM")
    assert _remarks(resources={})[0].startswith("container main asks for no memory: ")


SERVERS = "of several servers in a pod only the first has the tiers"


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        ("for rank in 0 1; do vllm serve m -dp 2 -dpn $rank & done; wait", True),
        ("vllm serve m --port 1 & /opt/bin/vllm serve m --port 2", True),
        ("vllm serve m --distributed-executor-backend mp -dp 2", False),
        ("vllm serve m --distributed-executor-backend $WHICH -dp 2", False),
    ],
)
def test_servers_that_do_not_know_of_each_other_are_spoken_of(words: str, is_said: bool) -> None:
    [_, *remarks] = _remarks(command=["sh", "-c", words])
    assert [remark[: len(SERVERS)] for remark in remarks] == [SERVERS] * is_said


def test_variables_from_elsewhere_are_kept_and_said_to_be_unseen() -> None:
    elsewhere = vllm_pod(envFrom=[{"secretRef": {"name": "tokens"}}])
    attached = _attached({"kind": "Pod", **elsewhere})
    values = {item["name"]: item["value"] for item in attached.document["spec"]["containers"][0]["env"]}
    assert values["PYTHONPATH"] == "/var/lib/kvtier/connector:$(PYTHONPATH)"
    assert "VLLM_PLUGINS" in attached.outcomes[0].remarks[-1]


def test_a_patch_adds_before_and_after_what_is_there() -> None:
    before = {"a": [{"n": 1}], "b": [{"n": 1, "v": "x"}], "c/d": {"e": "1"}, "f": None}
    after = {
        "a": [{"n": 0}, {"n": 1}],
        "b": [{"n": 1, "v": "y"}, {"n": 2}],
        "c/d": {"e": "2", "g": 3},
        "f": [],
    }
    assert [*json_patch(before, after)] == [
        {"op": "add", "path": "/a/0", "value": {"n": 0}},
        {"op": "test", "path": "/b/0/v", "value": "x"},
        {"op": "replace", "path": "/b/0/v", "value": "y"},
        {"op": "add", "path": "/b/-", "value": {"n": 2}},
        {"op": "test", "path": "/c~1d/e", "value": "1"},
        {"op": "replace", "path": "/c~1d/e", "value": "2"},
        {"op": "add", "path": "/c~1d/g", "value": 3},
        {"op": "add", "path": "/f", "value": []},
    ]


def test_a_patch_is_applied_to_no_other_manifest() -> None:
    before = _object("Deployment", {"template": _POD})
    after = _attached(before).document
    patch = [*json_patch(before, after)]
    assert jsonpatch.apply_patch(before, patch) == after
    other = _object("Deployment", {"template": {**_POD, "spec": {"containers": [{"name": "proxy"}]}}})
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(other, patch)


def _merge(one: Any, other: Any) -> Any:  # noqa: ANN401 - JSON
    """What kustomize makes of an object and a merge of it, where lists have items with names."""
    match one, other:
        case dict(), dict():
            both = {name: _merge(one[name], other[name]) for name in one if name in other}
            return {**other, **one, **both}
        case list(), list():
            new = {item["name"]: item for item in other}
            mine = [_merge(item, new.pop(item["name"])) if item["name"] in new else item for item in one]
            return [*new.values(), *mine]
    return other


def test_a_patch_leaves_what_another_component_added() -> None:
    before = _object("Deployment", {"template": _POD})
    after = _attached(before).document
    theirs = [{"name": "theirs", "mountPath": "/theirs"}]
    beside = copy.deepcopy(before)
    beside["spec"]["template"]["metadata"]["annotations"] = {"theirs": "1"}
    pod = beside["spec"]["template"]["spec"]
    pod["initContainers"] = pod["volumes"] = theirs
    pod["containers"][0]["env"] = pod["containers"][0]["volumeMounts"] = theirs
    operations, merge = [json.loads(patch["patch"]) for patch in kustomize_patches(before, after)]
    beside, plain = (_merge(jsonpatch.apply_patch(one, operations), merge) for one in (beside, before))
    assert plain == after
    assert beside == _merge({"spec": {"template": _theirs_alone(theirs)}}, after)


def _theirs_alone(theirs: list[dict[str, str]]) -> dict[str, Any]:
    container = {"name": _POD["spec"]["containers"][0]["name"], "env": theirs, "volumeMounts": theirs}
    spec = {"initContainers": theirs, "volumes": theirs, "containers": [container]}
    return {"metadata": {"annotations": {"theirs": "1"}}, "spec": spec}


def test_of_kinds_that_kustomize_has_no_schema_for_only_maps_are_merged() -> None:
    before = {**_object("Rollout", {"template": _POD}), "apiVersion": "argoproj.io/v1alpha1"}
    operations, merge = kustomize_patches(before, _attached(before).document)
    assert "initContainers" in operations["patch"]
    assert json.loads(merge["patch"])["spec"]["template"].keys() == {"metadata"}


@pytest.mark.parametrize(
    "metadata",
    [{"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}, {}],
    ids=["label of the workload", "of the template"],
)
def test_a_queue_sees_the_manifest_after_this(metadata: Mapping[str, Any]) -> None:
    queued = {**_POD, "metadata": {"labels": {**LABELS, "kueue.x-k8s.io/queue-name": "gpus"}}}
    template = {**queued, "spec": {**_POD["spec"], "schedulingGates": [{"name": "gate"}]}}
    document = _object("Deployment", {"template": template})
    document["metadata"] |= metadata
    assert _fields(_attached(document)) == ["spec.template.spec"]


@pytest.mark.parametrize(("user", "non_root"), [(None, True), (2000, True), (0, None)])
def test_beside_a_preset_the_init_container_needs_no_rights(user: int | None, non_root: bool | None) -> None:
    """KServe's preset has runAsNonRoot and seccompProfile in its own container, where nobody sees it here."""
    security = {} if user is None else {"securityContext": {"runAsUser": user}}
    service = {**_SERVICE, "spec": {"template": security}}
    spec = _attached(service, labels={"app.kubernetes.io/name": "qwen"}).document["spec"]["template"]
    theirs = spec["initContainers"][0]["securityContext"]
    assert theirs.get("runAsNonRoot") is non_root
    assert theirs["seccompProfile"] == {"type": "RuntimeDefault"}
    assert theirs["capabilities"] == {"drop": ["ALL"]}
