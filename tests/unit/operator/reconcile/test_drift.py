"""Whatever others do to a resource's objects, and in whatever order it is heard of, ends as it is wanted."""

import copy
from contextlib import closing
from itertools import permutations
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.unit.operator.reconcile.model_cluster.api import Call, Stream
from tests.unit.operator.reconcile.model_cluster.cluster import RESOURCE, Cluster
from tests.unit.operator.reconcile.model_cluster.deeds import DEEDS, content_leaves, do

from kvtier_common.kubernetes.answers import ConflictError, ServerError
from kvtier_operator.planning.base.names import MANAGED_BY_LABEL
from kvtier_operator.reconcile.api_server import BY_NAME, KINDS, Ref

_ANY: Final = st.integers(0, 999)
_QUIET_S: Final = 130.0
"""Longer than two of the queue's longest waits."""
_MOST_WRITES: Final = 4
"""Per object, after whatever happened before."""
_LOOKS: Final = 5
_STEPS: Final = ("arrives", "then", "told", "answered")
_ORDERS: Final = [
    permutation
    for permutation in permutations(_STEPS)
    if permutation.index("arrives") < permutation.index("answered")
]
_FIRST: Final = ("edit", "delete", f"strip {MANAGED_BY_LABEL}", "strip ownerReferences")
_KINDS: Final = {kind.kind for kind in KINDS}


class Drift(RuleBasedStateMachine):
    """Somebody writes, requests and events are late, answers are lost, operators die.

    One object is in focus: three deeds in four are about it, so that they meet.
    """

    @initialize(number=_ANY)
    def begins(self, number: int) -> None:
        self.cluster = Cluster()
        self.cluster.calm(1)
        self.stray: list[Call] = []
        live_objects = self.cluster.live_objects()
        self.focus = live_objects[number % len(live_objects)]

    # how requests and events come about

    def _call(self, number: int) -> Call | None:
        calls = self.cluster.api.calls
        about = _about(self.cluster, self.focus)
        calls = about if about and number % 4 else calls
        return calls[number % len(calls)] if calls else None

    @rule(number=_ANY)
    def arrives(self, number: int) -> None:
        call = self._call(number)
        if call and call.outcome is None:
            call.arrive(self.cluster.server)

    @rule(number=_ANY, lost=st.booleans())
    def answered(self, number: int, lost: bool) -> None:
        if call := self._call(number):
            self.cluster.answer(call, lost=lost)

    @rule(number=_ANY, error=st.sampled_from([ConflictError("changed"), ServerError("no")]))
    def refused(self, number: int, error: ConflictError | ServerError) -> None:
        call = self._call(number)
        if call and call.outcome is None:
            call.outcome = error
            self.cluster.answer(call)

    @rule()
    def all_answered(self) -> None:
        while calls := self.cluster.api.calls:
            self.cluster.answer(calls[0])

    def _stream(self, number: int) -> Stream | None:
        streams = [stream for stream in self.cluster.api.streams if stream.kind in _KINDS]
        about = [stream for stream in streams if stream.kind == self.focus.kind]
        streams = about if about and number % 4 else streams
        return streams[number % len(streams)] if streams else None

    @rule(number=_ANY, most=st.integers(1, 3))
    def told(self, number: int, most: int) -> None:
        if stream := self._stream(number):
            self.cluster.say(stream, most)

    @rule()
    def all_told(self) -> None:
        self.cluster.say_all()

    @rule(most=st.integers(1, 2))
    def resource_told(self, most: int) -> None:
        self.cluster.tell_resource(most)

    @rule(number=_ANY, expires=st.booleans())
    def watch_ends(self, number: int, expires: bool) -> None:
        if stream := self._stream(number):
            stream.expire() if expires else stream.end()
            self.cluster.loop.run_ready()

    @rule(seconds=st.sampled_from([0.03, 0.5, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.loop.pass_time(seconds)

    @rule()
    def operator_dies(self) -> None:
        self.stray += [call for call in self.cluster.stop() if call.outcome is None]
        self.cluster.start()

    @precondition(lambda self: self.stray)
    @rule(number=_ANY)
    def stray_request_arrives(self, number: int) -> None:
        self.stray.pop(number % len(self.stray)).arrive(self.cluster.server)

    # what others do

    @rule(number=_ANY, which=_ANY, deed=st.sampled_from(DEEDS))
    def others(self, number: int, which: int, deed: str) -> None:
        refs = self.cluster.live_objects()
        ref = self.focus if which % 4 or not refs else refs[which % len(refs)]
        do(self.cluster, deed, ref, number)

    @rule(replicas=st.integers(1, 2), weight=st.integers(1, 2))
    def spec_changed(self, replicas: int, weight: int) -> None:
        resource = copy.deepcopy(self.cluster.server.objects[RESOURCE])
        resource["spec"] |= {"replicas": replicas, "router": {"weights": {"queue": weight}}}
        self.cluster.server.put(RESOURCE, resource)

    @rule()
    def resource_made_anew(self) -> None:
        self.cluster.server.delete(RESOURCE)
        self.cluster.create_resource()

    # what has to come of it

    @rule()
    def settles(self) -> None:
        cluster = self.cluster
        cluster.calm(_QUIET_S)
        someones = cluster.someones()
        if in_the_way := {*someones} & {child.ref for child in cluster.wanted()}:
            said = str(cluster.server.objects[RESOURCE]["status"]["conditions"])
            assert any(f"{ref} is there already" in said for ref in in_the_way), (in_the_way, said)
        for ref in someones:
            cluster.server.delete(ref)
        ends_as_wanted(cluster)

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        try:
            self.settles()
        finally:
            self.cluster.close()


def is_mended(cluster: Cluster, quiet_s: float = _QUIET_S) -> None:
    """All is as wanted before long, in few writes."""
    before = len(cluster.api.writes)
    cluster.calm(quiet_s)
    assert not (wrong := cluster.drifted()), wrong
    assert len(cluster.api.writes) - before <= _MOST_WRITES * len(cluster.live_objects())


def ends_as_wanted(cluster: Cluster) -> None:
    """It does, and then nothing is written."""
    is_mended(cluster)
    before = len(cluster.api.writes)
    cluster.calm(_QUIET_S)
    assert not (idle := cluster.api.writes[before:]), idle


def _path(ref: Ref) -> str:
    return BY_NAME[ref.kind].path(ref.namespace, ref.name)


@pytest.mark.parametrize("first", _FIRST)
@pytest.mark.parametrize("then", DEEDS)
@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_write_of_ours_and_someones_meet_in_every_order(first: str, then: str, share: int) -> None:
    """A quarter of the orders for each two deeds: each deed, first or then, meets every order."""
    with closing(Cluster()) as cluster:
        cluster.calm(1)
        turn = (_FIRST.index(first) + DEEDS.index(then)) % share
        for number, order in [*enumerate(_ORDERS)][turn::share]:
            ref = cluster.live_objects()[number % len(cluster.live_objects())]
            do(cluster, first, ref, number)
            cluster.say_all()
            call = _write_under_way(cluster, ref)
            for step in order:
                if step == "arrives" and call and call.outcome is None:
                    call.arrive(cluster.server)
                elif step == "then":
                    do(cluster, then, ref, number)
                elif step == "told":
                    cluster.say_all()
                elif step == "answered" and call:
                    cluster.answer(call)
            for someones in cluster.someones():
                cluster.prompt()
                cluster.server.delete(someones)
            is_mended(cluster)
        ends_as_wanted(cluster)


@pytest.mark.parametrize("deed", ["edit", "take out"])
def test_every_field_of_every_object_is_mended(deed: str) -> None:
    with closing(Cluster()) as cluster:
        cluster.calm(1)
        refs = cluster.live_objects()
        for number in range(max(len(content_leaves(cluster.server.objects[ref])) for ref in refs)):
            for ref in refs:
                do(cluster, deed, ref, number)
            is_mended(cluster, quiet_s=1)
        ends_as_wanted(cluster)


def test_what_another_namespace_says_is_ours_is_left_alone() -> None:
    """An owner has objects in its own namespace alone: to name its uid elsewhere has nothing deleted."""
    with closing(Cluster()) as cluster:
        cluster.calm(1)
        ours, forged = cluster.live_objects(), []
        for ref in ours:
            document = copy.deepcopy(cluster.server.objects[ref])
            document["metadata"]["namespace"] = "elsewhere"
            forged.append(Ref(ref.kind, "elsewhere", ref.name))
            cluster.server.put(forged[-1], document)
        cluster.say_all()
        do(cluster, "edit", ours[0], 0)
        cluster.calm(_QUIET_S)
        assert not {*forged} - {*cluster.live_objects()}


def _write_under_way(cluster: Cluster, ref: Ref) -> Call | None:
    """The operator's next write to an object, not yet arrived; None where it has no reason for one."""
    for _ in range(_LOOKS):
        if calls := _about(cluster, ref):
            return calls[0]
        cluster.loop.pass_time(0.03)
        for call in [call for call in cluster.api.calls if call.request.method == "GET"]:
            cluster.answer(call)
    return None


def _about(cluster: Cluster, ref: Ref) -> list[Call]:
    return [call for call in cluster.api.calls if call.request.path == _path(ref)]


TestDrift = Drift.TestCase
TestDrift.settings = settings(stateful_step_count=20)
