"""The pods of one resource: when it is told, and which of them stands for all."""

from typing import Any

from kvtier_operator.planning.base.names import ATTACHED
from kvtier_operator.reconcile.cache.selected_pods import SelectedPods


class Told:
    """Counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def _pod(name: str, revision: str, created_at: str, *, attached: bool = False, **spec: str) -> dict[str, Any]:
    owner = {"kind": "StatefulSet", "name": "chat", "uid": "u", "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": created_at,
            "labels": {"controller-revision-hash": revision},
            "ownerReferences": [owner],
            **({"annotations": {ATTACHED: "chat"}} if attached else {}),
        },
        "spec": {"containers": [], "revision": revision, **spec},
    }


def _sampled(pods: SelectedPods) -> dict[str, str]:
    return {kind: sample["spec"]["revision"] for kind, sample in pods.samples.items()}


def test_a_sample_is_of_the_latest_template_before_all_as_its_owner_wrote_it() -> None:
    pods = SelectedPods(Told())
    assert pods.samples == {}
    for pod, sampled in (
        (_pod("chat-0", "a", "2026-01-01T00:00:00Z", attached=True), "a"),
        (_pod("chat-1", "b", "2026-01-02T00:00:00Z"), "b"),
        (_pod("chat-2", "a", "2026-01-01T00:00:00Z"), "b"),
        (_pod("chat-3", "c", "2026-01-03T00:00:00Z", attached=True), "c"),
        (_pod("chat-4", "c", "2026-01-03T00:00:00Z"), "c"),
    ):
        pods.upsert(pod)
        assert _sampled(pods) == {"statefulset/chat": sampled}
    assert "annotations" not in pods.samples["statefulset/chat"]["metadata"]
    pods.replace(set(), 1)
    assert (pods.all, _sampled(pods)) == ((), {"statefulset/chat": "c"})


def test_a_kind_of_which_there_are_no_pods_stands_for_none() -> None:
    pods = SelectedPods(Told())
    one, other = (_pod(f"{owner}-0", owner, "2026-01-01T00:00:00Z") for owner in ("chat", "long"))
    other["metadata"]["ownerReferences"][0]["name"] = "long"
    pods.upsert(one)
    pods.upsert(other)
    assert _sampled(pods) == {"statefulset/chat": "chat", "statefulset/long": "long"}
    pods.delete(one)
    assert _sampled(pods) == {"statefulset/long": "long"}


def test_what_is_kept_of_many_kinds_is_bounded() -> None:
    pods = SelectedPods(Told())
    many = [_pod(f"chat-{number}", "a", "2026-01-01T00:00:00Z") for number in range(17)]
    for number, pod in enumerate(many):
        pod["metadata"]["ownerReferences"][0]["name"] = f"chat-{number}"
        pods.upsert(pod)
    assert (len(pods.samples), pods.unsampled) == (16, {"statefulset/chat-16"})
    pods.delete(many[16])
    assert not pods.unsampled
    pods.upsert(_pod("chat-0", "b", "2026-01-02T00:00:00Z", text="x" * (128 << 10)))
    assert pods.unsampled == {"statefulset/chat"}


def test_what_says_nothing_new_is_not_told() -> None:
    told = Told()
    pods = SelectedPods(told)
    pods.upsert(_pod("chat-0", "a", "2026-01-01T00:00:00Z"))
    pods.replace({("team", "chat-0")}, 1)
    assert (told.times, pods.listed) == (2, True)
    pods.upsert(_pod("chat-0", "a", "2026-01-01T00:00:00Z", nodeName="node"))
    pods.replace({("team", "chat-0")}, 2)
    assert told.times == 2
    pods.delete(_pod("chat-0", "a", "2026-01-01T00:00:00Z"))
    assert (told.times, pods.all) == (3, ())


def test_a_pod_on_its_way_out_is_no_longer_one() -> None:
    pods = SelectedPods(Told())
    leaving = _pod("chat-0", "a", "2026-01-01T00:00:00Z")
    pods.upsert(leaving)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    pods.upsert(leaving)
    assert pods.all == ()
