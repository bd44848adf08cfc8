"""The size of a store that is made: what it is said to hold fits beside everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.planning.objects.built import plan_for

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.store.store_plan import StorePlan, memory_for, store_size
from kvtier_operator.planning.units import GIB, MIB

REMOTE = "spec.tiers.remote"
_TOO_LITTLE = (
    "spec.tiers.remote.managed.memory: 1 GiB holds 633 MiB beside Valkey and the buffers of 32 connections, "
    "and capacity is 4 GiB: give at least 4.76 GiB, more shards, or a smaller capacity"
)


def store(**remote: object) -> StorePlan:
    planned = plan_for({REMOTE: {"capacity": "4Gi", "managed": {}, **remote}}).store
    assert planned
    return planned


@given(held=st.integers(1, 1 << 43), connections=st.integers(1, 1 << 13))
def test_the_least_memory_holds_it_and_a_mib_less_does_not(held: int, connections: int) -> None:
    memory = memory_for(held, connections)
    assert store_size(memory, connections).held_bytes >= held
    assert store_size(memory - 2 * MIB, connections).held_bytes < held + MIB
    size = store_size(memory, connections)
    assert size.held_bytes + size.buffer_bytes < size.memory_bytes
    assert size.io_threads < max(size.cores, 2)


@given(capacity=st.integers(1, 1 << 43), shards=st.integers(1, 64))
def test_shards_hold_the_capacity_together(capacity: int, shards: int) -> None:
    size = store(capacity=capacity, managed={"shards": shards}).size
    assert size.held_bytes * shards >= capacity


def test_without_memory_it_gets_what_the_capacity_needs() -> None:
    assert store().size.held_bytes >= 4 * GIB
    assert store(managed={"memory": "100Gi"}).size.memory_bytes == 100 * GIB


@pytest.mark.parametrize(("replicas", "connections"), [(1, 32), (3, 32), (4, 64), (6, 64), (7, 128)], ids=str)
def test_few_changes_of_replicas_restart_the_server(replicas: int, connections: int) -> None:
    changes = {"spec.replicas": replicas, "spec.engine.dataParallelSize": 2}
    planned = plan_for({**changes, REMOTE: {"capacity": "4Gi", "managed": {}, "connections": 5}}).store
    assert planned
    assert planned.size.buffer_bytes == connections * 8 * MIB


def test_a_secret_that_is_named_is_not_made() -> None:
    assert store().makes_secret
    named = store(credentials={"secretRef": {"name": "mine"}})
    assert (named.secret, named.makes_secret) == ("mine", False)


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        (
            {"managed": {"memory": "1Gi"}},
            _TOO_LITTLE,
        ),
        (
            {"managed": {"memory": "1Gi", "shards": 2}},
            _TOO_LITTLE.partition(", and")[0] + ", and each of 2 shards' part of capacity is 2 GiB: give at",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_with_its_field(remote: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        store(**remote)
    assert str(refused.value).startswith(message)


def test_no_store_is_made_beside_somebody_else_s() -> None:
    assert plan_for({}).store is None
    assert plan_for({REMOTE: {"capacity": "4Gi", "url": "redis://cache:6379"}}).store is None


def test_engines_use_it_as_one_that_the_resource_names() -> None:
    remote = plan_for({REMOTE: {"capacity": "4Gi", "managed": {}}}).resource.spec.tiers.remote
    assert remote
    assert remote.credentials
    assert remote.managed, "what was asked for is still told"
    assert (remote.url, remote.credentials.secret_ref.name) == (
        "redis://qwen3-32b-store-0.default.svc:6379",
        "qwen3-32b-store",
    )


def test_the_plan_says_what_its_pod_takes() -> None:
    notes = plan_for({REMOTE: {"capacity": "9Gi", "managed": {}}}).notes
    assert (
        "the store is a pod of 10.31 GiB of memory and 4 cores: 9 GiB for values, 256 MiB for what "
        "connections have under way, the rest Valkey's"
    ) in notes
