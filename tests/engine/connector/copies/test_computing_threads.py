"""Work that is given to the threads of the process's own OpenMP."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kvtier_connector.vllm.copies import layerwise_disk_loads
from kvtier_connector.vllm.copies.layerwise_disk_loads import on_computing_threads

SOON_S = 60.0
TORCH_S_OPENMP = next((Path(torch.__file__).parent / "lib").glob("libgomp*"))


@pytest.fixture(params=["OpenMP", "none"])
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether there is OpenMP. vLLM preloads it, so that it is among the process's own symbols."""
    found = layerwise_disk_loads._parallel(str(TORCH_S_OPENMP)) if request.param == "OpenMP" else None
    monkeypatch.setattr(layerwise_disk_loads, "_parallel", lambda: found)
    return str(request.param)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch._C.set_num_threads(2)  # vLLM replaces the public one, by nothing
    yield
    torch._C.set_num_threads(before)


@pytest.mark.usefixtures("there")
def test_each_item_is_done_once() -> None:
    done = list[int]()
    on_computing_threads(done.append, range(1000))
    assert sorted(done) == list(range(1000))
    on_computing_threads(done.append, [])
    assert len(done) == 1000


@pytest.mark.usefixtures("two_threads")
def test_items_are_done_at_the_same_time(there: str) -> None:
    if there == "none":
        threads = list[int]()
        on_computing_threads(lambda _: threads.append(threading.get_ident()), range(2))
        assert threads == [threading.get_ident()] * 2
        return
    both = threading.Barrier(2)

    def meet(_: int) -> None:
        both.wait(SOON_S)

    on_computing_threads(meet, range(2))
    assert not both.broken


@pytest.mark.usefixtures("there")
def test_the_first_failure_is_the_callers() -> None:
    done = list[int]()

    def do(item: int) -> None:
        if item == 3:
            raise IndexError("the test's fault")
        done.append(item)

    with pytest.raises(IndexError, match=r"^the test's fault$"):
        on_computing_threads(do, range(1000))
    assert 3 not in done
    assert len(done) < 999, "the others are not done for nothing"
    on_computing_threads(done.append, range(1000, 1010))
    assert set(range(1000, 1010)) <= set(done)


def test_a_library_without_openmp_is_seen_as_such() -> None:
    assert layerwise_disk_loads._parallel("libm.so.6") is None
