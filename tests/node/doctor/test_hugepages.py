import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.doctor.conftest import PAGE_BYTES, Examine, free_pages

from kvtier_operator.planning.pod.demands import Demands, HugepagesDemand
from kvtier_operator.planning.units import size

pytestmark = pytest.mark.usefixtures("sixteen_pages")


def pages(number: int, *, required: bool = True) -> Demands:
    return Demands(1, 0, hugepages=HugepagesDemand(PAGE_BYTES, number, required=required))


def test_pages_are_taken_and_given_back(examine: Examine) -> None:
    before = free_pages()
    found = examine(pages(16))
    assert (found.status, found.message) == (0, '{"outcome": "Pass"}')
    assert found.lines[-1].startswith(
        "Pass  hugepages: 16 pages of 2 MiB needed (32 MiB), all of them could be taken"
    )
    assert free_pages() == before >= 16


def test_a_pool_that_is_too_small(examine: Examine) -> None:
    free = free_pages()
    found = examine(pages(free + 5))
    assert found.status == 1
    assert f"{free:,} free on node gpu-3; reserve 5 more there" in found.message
    assert free_pages() == free
    rather = examine(pages(free + 5, required=False))
    assert rather.status == 0
    [warning] = json.loads(rather.message)["warnings"]
    assert f"{free:,} free on node gpu-3: the tier falls back to ordinary pages" in warning


def test_a_page_size_that_the_kernel_lacks(examine: Examine) -> None:
    found = examine(Demands(1, 0, hugepages=HugepagesDemand(16 << 20, 1, required=True)))
    assert found.status == 1
    assert "the kernel of node gpu-3 has no pages of that size" in found.message


@pytest.fixture
def hugetlb_group(sixteen_pages: None) -> Iterator[Path]:
    """A control group that may have 4 pages more than are free."""
    del sixteen_pages
    v2 = [each for each in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")) if _has_hugetlb(each)]
    v1 = Path("/sys/fs/cgroup/hugetlb")
    assert v2 or v1.is_dir(), "this kernel has no hugetlb controller"
    if v2:
        (v2[0] / "cgroup.subtree_control").write_text("+hugetlb")
    group = (v2[0] if v2 else v1) / f"kvtier-test-{os.getpid()}"
    group.mkdir()
    limit = "hugetlb.2MB.max" if v2 else "hugetlb.2MB.limit_in_bytes"
    try:
        (group / limit).write_text(str((free_pages() + 4) * PAGE_BYTES))
        yield group
    finally:
        group.rmdir()


def _has_hugetlb(mount: Path) -> bool:
    controllers = mount / "cgroup.controllers"
    return controllers.is_file() and "hugetlb" in controllers.read_text().split()


def inside(group: Path) -> tuple[str, ...]:
    return "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"


def test_a_limit_of_the_control_group(examine: Examine, hugetlb_group: Path) -> None:
    free = free_pages()
    assert examine(pages(free), *inside(hugetlb_group)).status == 0
    found = examine(pages(free + 5), *inside(hugetlb_group))
    assert found.status == 1
    assert f"the control group's limit is {size((free + 4) * PAGE_BYTES)}; " in found.message


def test_a_pool_below_the_control_group_s_limit(examine: Examine, hugetlb_group: Path) -> None:
    found = examine(pages(free_pages() + 4), *inside(hugetlb_group))
    assert found.status == 1
    assert "free on node gpu-3; reserve 4 more there" in found.message
