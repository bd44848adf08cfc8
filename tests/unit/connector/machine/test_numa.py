"""NUMA nodes of a machine with two, and where memory really goes on this one."""

import os
from pathlib import Path

import pytest

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core.machine import numa
from kvtier_connector.core.machine.numa import cpus_of_node, node_of_cpus, node_of_pci
from kvtier_connector.core.region import pages, region
from kvtier_connector.core.region.region import RegionRequest


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    for number, cpus in enumerate(("0-3,8", "4-7,9", "")):  # the last one has only memory
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}/cpulist").write_text(f"{cpus}\n")
    return tmp_path


def request(nodes: tuple[int | None, ...], slices: int, policy: Policy = Policy.NEVER) -> RegionRequest:
    return RegionRequest(slices, 4 * MIB, slices > 1, policy, 2 * MIB, nodes)


def test_a_nodes_cpus(nodes: Path) -> None:
    assert cpus_of_node(1, nodes) == {4, 5, 6, 7, 9}
    assert cpus_of_node(2, nodes) == cpus_of_node(3, nodes) == frozenset()


@pytest.mark.parametrize(
    ("cpus", "node"), [({1, 8}, 0), ({4, 5, 6, 7, 9}, 1), ({3, 4}, None), ({12}, None), (set(), None)]
)
def test_the_node_of_a_ranks_cpus(nodes: Path, cpus: set[int], node: int | None) -> None:
    assert node_of_cpus(cpus, nodes) == node


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("0\n", 0), ("-1\n", None)])
def test_the_node_of_a_device(tmp_path: Path, text: str, node: int | None) -> None:
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0/numa_node").write_text(text)
    assert node_of_pci(0, 0x3B, 0, tmp_path) == node
    assert node_of_pci(1, 0x3B, 0, tmp_path) is None


@pytest.mark.parametrize("policy", [Policy.NEVER, Policy.REQUIRE])
def test_each_slice_is_touched_first_on_a_cpu_of_its_node(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if policy is Policy.REQUIRE:
        request.getfixturevalue("hugepage_pool")(4)
    allowed = sorted(os.sched_getaffinity(0))
    of_node = {0: frozenset(allowed[:1]), 1: frozenset(allowed[-1:])}
    touched: dict[int, set[int]] = {}
    real = pages.populate_part

    def spy(address: int, size_bytes: int) -> None:
        touched.setdefault(address, set()).update(os.sched_getaffinity(0))
        real(address, size_bytes)

    monkeypatch.setattr(numa, "cpus_of_node", lambda node: of_node[node])
    monkeypatch.setattr(pages, "populate_part", spy)
    handle, descriptor = region.create(RegionRequest(2, 4 * MIB, True, policy, 2 * MIB, (1, 0)))  # noqa: FBT003
    if policy is Policy.REQUIRE:  # all are taken by the one who makes the region
        first, second = sorted(touched)
        assert second - first == 4 * MIB
        assert [touched[first], touched[second]] == [of_node[1], of_node[0]]
    touched.clear()
    slices = [region.attach(handle, number) for number in (0, 1)]
    os.close(descriptor)
    assert [touched[part.address] for part in slices] == [of_node[1], of_node[0]]
    assert os.sched_getaffinity(0) == set(allowed)


@pytest.mark.parametrize("slices", [1, 2])
def test_the_report_has_the_node_that_the_pages_came_from(slices: int) -> None:
    here = node_of_cpus(os.sched_getaffinity(0))
    if here is None:
        pytest.skip("this process may run on several nodes")
    handle, descriptor = region.create(request((here,) * slices, slices))
    memory = region.attach(handle, slices - 1)
    if descriptor >= 0:
        os.close(descriptor)
    assert memory.report.nodes == ((here, 4 * MIB),)
    assert f"on 4 KiB pages, NUMA 100% of node {here} (asked 4 KiB pages, node {here})" in str(memory.report)


def test_a_node_that_gives_nothing_is_said() -> None:
    report = region.alone(request((4095,), 1)).report
    assert report.asked_node == 4095
    assert str(report).endswith("node 4095: NUMA node 4095: no more such pages, or no CPU of it may be used)")
