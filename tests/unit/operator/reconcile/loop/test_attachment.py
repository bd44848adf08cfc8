"""What is published for pods of others: what their namespace has room for; once begun, to the end."""

from dataclasses import replace
from typing import Any

from tests.cases.kvcachetier import document

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.attach.plan import AttachPlan, plan_attach
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.planning.attach.rivals import Rival
from kvtier_operator.planning.cluster.growth import NamespaceRules
from kvtier_operator.planning.cluster.storage import StorageClass
from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.cache.selected_pods import SelectedPods
from kvtier_operator.reconcile.facts.engine_report import EngineReport
from kvtier_operator.reconcile.loop.attachment import SelectionObservation, attach
from kvtier_operator.reconcile.observe.attached_engines import EngineReports
from kvtier_operator.reconcile.observe.attachment import AttachmentTerms, Injection
from kvtier_operator.reconcile.status.withdrawal import withdrawal_from_status

NOW = "2026-01-01T00:10:00Z"
QUOTA = {
    "metadata": {"name": "team"},
    "status": {"hard": {"requests.memory": "300Gi"}, "used": {"requests.memory": "128Gi"}},
}


def _plan() -> AttachPlan:
    changes = {"spec.attach": {"podSelector": {"matchLabels": {"app": "chat"}}}}
    return plan_attach(parse_resource(document(changes), "chat"), Observed())


def _pod(name: str, created_at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    resources = {"requests": {"memory": "64Gi"}}
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": created_at},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    }


def _attached(name: str) -> dict[str, Any]:
    attached = attach_pod(_plan(), _pod(name, "2026-01-01T00:01:00Z"), "x/y:1")
    assert isinstance(attached, dict)
    return attached


def _seen(*pods: dict[str, Any], rules: NamespaceRules | None = None) -> SelectionObservation:
    selected = SelectedPods(lambda: None)
    for pod in pods:
        selected.upsert(pod)
    terms = AttachmentTerms(Injection.INSTALLED, rules=rules or NamespaceRules())
    return SelectionObservation(selected, terms, None, published=False, now=NOW)


def test_a_quota_lets_a_rollout_begin_or_not_and_end() -> None:
    crowded = NamespaceRules(quotas=[QUOTA])
    observed = _seen(_pod("one"), _pod("two"), rules=crowded)
    refused = attach(_plan(), observed)
    assert (refused.condition.reason, "settings" in refused.status) == ("QuotaExceeded", False)
    changed = attach(_plan(), replace(observed, published=True))
    assert (changed.condition.reason, "settings" in changed.status) == ("QuotaExceeded", False), (
        "it has less now"
    )
    begun = replace(_seen(_pod("one"), _pod("two"), _attached("three"), rules=crowded), published=True)
    goes_on = attach(_plan(), begun)
    assert (goes_on.condition.reason, "settings" in goes_on.status) == ("StartedBefore", True)


def test_a_pod_that_its_owner_adds_is_not_refused_for_the_tiers_sake() -> None:
    status = {"hard": {"requests.memory": "300Gi"}, "used": {"requests.memory": "200Gi"}}
    narrow = NamespaceRules(quotas=[{**QUOTA, "status": status}])
    told = attach(_plan(), replace(_seen(_attached("one"), rules=narrow), published=True))
    assert (told.condition.reason, "settings" in told.status) == ("QuotaExceeded", False)


def test_pods_whose_command_proves_that_a_tier_is_for_nothing_are_not_changed() -> None:
    alone = _pod("one")
    alone["spec"]["containers"][0]["args"] = ["serve", "--pipeline-parallel-size=2"]
    refused = attach(_plan(), _seen(alone))
    assert (refused.condition.reason, "settings" in refused.status) == ("PipelineParallel", False)
    [told] = refused.status["pods"]
    assert (told["state"], told["reason"]) == ("LeftAlone", "PipelineParallel")
    drifted = _attached("one")
    drifted["spec"]["containers"][0]["args"] = alone["spec"]["containers"][0]["args"]
    taken_back = attach(_plan(), replace(_seen(drifted), published=True))
    assert (taken_back.condition.reason, "settings" in taken_back.status) == ("PipelineParallel", False)


def test_each_kind_of_pods_is_looked_at() -> None:
    """The first is fine; what is said of the second names both."""
    chat, long = _pod("chat-0"), _pod("long-0")
    for pod in (chat, long):
        owner = {"kind": "StatefulSet", "name": pod["metadata"]["name"][:4], "uid": "u", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
    long["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.31.0"
    refused = attach(_plan(), _seen(chat, long))
    assert (refused.condition.reason, "settings" in refused.status) == ("UnknownVersion", False)
    assert refused.condition.message == (
        "statefulset/long: image vllm/vllm-openai:v0.31.0 has vLLM 0.31, and kvtier runs in 0.32 or 0.33; "
        "statefulset/chat would get the tier if spec.attach.podSelector left statefulset/long out; no pod is "
        "changed"
    )
    states = {pod["name"]: pod["state"] for pod in refused.status["pods"]}
    assert states == {"chat-0": "StartedBefore", "long-0": "LeftAlone"}
    long["spec"]["containers"][0] = chat["spec"]["containers"][0] | {
        "resources": {"requests": {"memory": "1Ti"}}
    }
    most = {"metadata": {"name": "most"}, "spec": {"limits": [{"type": "Pod", "max": {"memory": "1Ti"}}]}}
    told = attach(_plan(), _seen(chat, long, rules=NamespaceRules([most]))).condition.message
    assert told.startswith("statefulset/long: LimitRange most allows a pod 1 TiB of memory")


def test_an_attached_pod_is_measured_as_its_owner_wrote_it() -> None:
    most = {
        "metadata": {"name": "most"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]},
    }
    fits = attach(_plan(), _seen(_attached("one"), rules=NamespaceRules([most])))
    assert (fits.condition.reason, "settings" in fits.status) == ("AllAttached", True)
    most["spec"]["limits"][0]["max"]["memory"] = "100Gi"  # type: ignore[index]
    refused = attach(_plan(), _seen(_attached("one"), rules=NamespaceRules([most])))
    assert (refused.condition.reason, "settings" in refused.status) == ("LimitRangeExceeded", False)


def test_before_a_pod_was_seen_a_namespace_with_rules_gets_nothing() -> None:
    assert "settings" in attach(_plan(), _seen()).status
    refused = attach(_plan(), _seen(rules=NamespaceRules(quotas=[QUOTA])))
    assert (refused.condition.reason, "settings" in refused.status) == ("NotMeasured", False)


def test_a_pod_without_a_node_is_looked_at_when_it_was_waited_for_long_enough() -> None:
    waiting = _attached("one")
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1: 1 Insufficient memory."}
    waiting["status"] = {"conditions": [condition | {"lastTransitionTime": "2026-01-01T00:09:00Z"}]}
    patient = attach(_plan(), _seen(waiting))
    assert (patient.condition.is_true, patient.again_s) == (True, 240)
    taken_back = attach(_plan(), replace(_seen(waiting), now="2026-01-01T01:00:00Z"))
    assert (taken_back.condition.reason, "settings" in taken_back.status) == ("Unschedulable", False)
    assert (taken_back.status["withdrawn"]["retryAt"], taken_back.again_s) == ("2026-01-01T01:10:00Z", 300)
    withdrawn = withdrawal_from_status(taken_back.status)
    retried = attach(_plan(), replace(_seen(_pod("two")), withdrawn=withdrawn, now="2026-01-01T01:10:00Z"))
    assert (retried.condition.reason, "settings" in retried.status) == ("StartedBefore", True)
    assert retried.status["withdrawn"]["times"] == 1, "the next time it is away for longer"


def test_a_pod_that_is_left_alone_says_why() -> None:
    queued = _pod("one")
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpus"}
    [told] = attach(_plan(), _seen(queued)).status["pods"]
    assert (told["state"], told["reason"]) == ("LeftAlone", "Queued")


def test_an_engine_whose_command_changed_is_left_alone_and_its_pod_is_asked_for_again() -> None:
    observed = _seen(_attached("one"))
    assert attach(_plan(), observed).condition.reason == "AllAttached"
    reports = EngineReports({"one": EngineReport("NoPrefixCaching")}, again_s=7)
    drifted = attach(_plan(), replace(observed, engines=reports))
    assert (drifted.condition.reason, drifted.again_s) == ("LeftAlone", 7)
    assert "remove --no-enable-prefix-caching" in drifted.condition.message
    [told] = drifted.status["pods"]
    assert (told["state"], told["reason"]) == ("LeftAlone", "NoPrefixCaching")
    assert "settings" in drifted.status, "the next pod may have another command"
    assert drifted.tiers["cpu"]["source"] == "Planned"


def test_pods_of_several_tiers_get_none_and_the_others_theirs() -> None:
    rival = Rival("long", {"app": "chat", "length": "long"}, frozenset({"one"}))
    told = attach(_plan(), replace(_seen(_pod("one"), _pod("two")), rivals=[rival]))
    assert (told.condition.reason, told.status["leavesOut"]) == ("SeveralTiers", [rival.status])
    assert "settings" in told.status
    states = [(pod["name"], pod["state"], pod.get("reason")) for pod in told.status["pods"]]
    assert states == [("two", "StartedBefore", None), ("one", "LeftAlone", "SeveralTiers")]
    same = attach(_plan(), replace(_seen(_pod("one")), rivals=[Rival("same", {"app": "chat"})]))
    assert (same.condition.reason, "settings" in same.status) == ("SeveralTiers", False)


def test_a_disk_that_no_storage_class_makes_is_not_published() -> None:
    disk = {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "gone"}}}
    attachment = {"podSelector": {"matchLabels": {"app": "chat"}}}
    changes = {"spec.attach": attachment, "spec.tiers.disk": disk}
    plan = plan_attach(parse_resource(document(changes), "chat"), Observed())
    observed = replace(_seen(_pod("one")), storage_classes=[StorageClass("fast", default=True)])
    refused = attach(plan, observed)
    assert (refused.condition.reason, "settings" in refused.status) == ("StorageClassMissing", False)
