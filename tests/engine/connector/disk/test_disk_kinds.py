"""Real engines with a disk tier that schedule ahead, preempt, have adapters or see images."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.conftest import LLAMA
from tests.engine.connector.disk.disk_kinds import (
    IMAGE_ID,
    IMAGE_TOKENS,
    PIXELS,
    schedule_ahead,
    with_tokenizer,
    write_adapter,
    write_llava,
)
from tests.engine.connector.disk_engine import DiskEngine, tier
from tests.engine.connector.prompts import SMALL_DEVICE, answers, metric, prompt, tokens_of

from kvtier_connector.config import MIB, kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# Memory holds 32 chunks, of which 8 may wait to be written; the crowd's prompts have 49, the
# device has room for 47.
CPU_BYTES = MIB
DISK_BYTES = 8 * MIB
CROWD = [prompt(length, 9) for length in (256, 250, 224, 210, 200, 190, 180, 161)]
WHOLE = [len(ids) // 32 * 32 for ids in CROWD]
LONG = 160
SHARED = [CROWD[0] + prompt(40, 1), CROWD[0][:128] + prompt(50, 2), CROWD[0] + prompt(70, 3), prompt(90, 4)]


@pytest.fixture(scope="module")
def roomy(engine: Callable[..., Any]) -> list[list[int]]:
    """What an engine without tiers or a prefix cache, which has room for all, answers to CROWD and SHARED."""
    with engine(enable_prefix_caching=False) as llm:
        tokens = tokens_of(answers(llm, CROWD, LONG) + answers(llm, SHARED, LONG))
        assert metric(llm, "vllm:num_preemptions") == 0
    return tokens


@pytest.fixture(scope="module")
def disk_engine(
    request: pytest.FixtureRequest,
    engine: Callable[..., Any],
    roomy: list[list[int]],
    disk_pays: set[float],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DiskEngine]:
    """An engine of a kind; pytest ends it before it starts the next."""
    del disk_pays
    del roomy  # a second engine in one process takes the first one's metrics away: that one has to be gone
    folder = tmp_path_factory.mktemp("kind")
    settings: dict[str, Any] = dict(SMALL_DEVICE)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "ahead":
            schedule_ahead(patch)
        elif request.param == "adapters":
            settings |= {"enable_lora": True, "max_loras": 3}
        elif request.param == "images":
            with_tokenizer(patch)
            settings["model"] = write_llava(folder / "model", LLAMA)
        small = replace(tier(folder / "disk", DISK_BYTES), cpu_capacity_bytes=CPU_BYTES)
        with engine(kv_transfer_config(small), **settings) as llm:
            yield DiskEngine(llm)


@dataclass(frozen=True)
class Asked:
    """A prompt, and what else decides its answer."""

    ids: list[int]
    adapter: Any = None
    image: Any = None


def found(engine: DiskEngine, asked: Sequence[Asked], tokens: int = 8) -> list[tuple[list[int], int]]:
    """Return what is answered side by side, and how many tokens of each prompt were cached."""
    from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

    how = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
    prompts: list[dict[str, Any]] = [{"prompt_token_ids": each.ids} for each in asked]
    for each, inputs in zip(asked, prompts, strict=True):
        if each.image is not None:
            inputs["multi_modal_data"] = {"image": each.image}
    adapters = [each.adapter for each in asked]
    outputs = engine.llm.generate(prompts, how, use_tqdm=False, lora_request=adapters)
    return [(list(output.outputs[0].token_ids), output.num_cached_tokens) for output in outputs]


def fill(engine: DiskEngine, folder: Path) -> None:
    """Have all of CROWD on disk and nothing elsewhere."""
    engine.restart(folder, DISK_BYTES)
    engine.ask(CROWD)
    engine.restart(folder, DISK_BYTES)


def hits(engine: DiskEngine) -> float:
    return metric(engine.llm, "vllm:kvtier_disk_hit_chunks")


@pytest.mark.parametrize("disk_engine", ["ahead"], indirect=True)
def test_steps_that_are_scheduled_ahead(
    disk_engine: DiskEngine, roomy: list[list[int]], tmp_path: Path
) -> None:
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler  # noqa: PLC0415 - takes seconds

    assert isinstance(disk_engine._core.scheduler, AsyncScheduler)
    assert disk_engine._core.batch_queue_size == 2
    fill(disk_engine, tmp_path / "disk")
    before = hits(disk_engine)
    assert disk_engine.ask(CROWD) == ([tokens[:8] for tokens in roomy[: len(CROWD)]], WHOLE)
    assert hits(disk_engine) - before == sum(WHOLE) // 32

    disk_engine.restart(tmp_path / "disk", DISK_BYTES)
    together = answers(disk_engine.llm, SHARED, LONG)
    assert tokens_of(together) == roomy[len(CROWD) :]
    assert [cached for _, cached in together] == [256, 128, 256, 0]


@pytest.mark.parametrize("prompt_only", [True, False], ids=["prompts", "generated too"])
@pytest.mark.parametrize("disk_engine", ["in step", "ahead"], indirect=True)
def test_preempted_requests_go_on_with_what_is_on_disk(
    disk_engine: DiskEngine,
    roomy: list[list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    prompt_only: bool,
) -> None:
    scheduler = disk_engine.connector.connector_scheduler
    config = scheduler.config._replace(offload_prompt_only=prompt_only)
    monkeypatch.setattr(scheduler, "config", config)
    fill(disk_engine, tmp_path / "disk")
    before, preempted = hits(disk_engine), metric(disk_engine.llm, "vllm:num_preemptions")
    together = answers(disk_engine.llm, CROWD, LONG)
    assert tokens_of(together) == roomy[: len(CROWD)]
    assert metric(disk_engine.llm, "vllm:num_preemptions") > preempted
    # vLLM reports what a request found when it began; what was found beyond that was found by resumed ones.
    assert hits(disk_engine) - before > sum(cached for _, cached in together) // 32 > 0


@pytest.mark.parametrize("disk_engine", ["adapters"], indirect=True)
def test_what_an_adapter_computes_is_not_written(
    disk_engine: DiskEngine, roomy: list[list[int]], tmp_path: Path
) -> None:
    from vllm.lora.request import LoRARequest  # noqa: PLC0415 - takes seconds

    def adapter(number: int, name: str, seed: int) -> Asked:
        folder = write_adapter(tmp_path / name, seed, hidden_size=64, layers=2)
        return Asked(CROWD[0], adapter=LoRARequest(name, number, str(folder)))

    base, one, two = Asked(CROWD[0]), adapter(1, "one", 1), adapter(2, "two", 2)
    disk_engine.restart(tmp_path / "disk")
    for _ in range(2):  # chunks in use are offered again
        with_one, with_two = (found(disk_engine, [each])[0][0] for each in (one, two))
        disk_engine.settle()
        assert disk_engine.disk.used == 0
    # Its last store ends when the request has finished.
    found(disk_engine, [Asked(CROWD[1], adapter=one.adapter)], tokens=1)
    disk_engine.settle()
    assert disk_engine.disk.used == 0
    assert found(disk_engine, [base]) == [(roomy[0][:8], 0)]
    disk_engine.settle()
    assert disk_engine.disk.used == 8
    assert len({tuple(tokens) for tokens in (roomy[0][:8], with_one, with_two)}) == 3, (
        "adapters do not matter"
    )

    disk_engine.restart(tmp_path / "disk")
    before = hits(disk_engine)
    assert found(disk_engine, [one, base, two]) == [(with_one, 0), (roomy[0][:8], 256), (with_two, 0)]
    assert hits(disk_engine) - before == 8
    disk_engine.settle()
    assert disk_engine.disk.used == 8

    # Another start finds other weights under the name and path that are in a chunk's key.
    disk_engine.restart(tmp_path / "disk")
    assert found(disk_engine, [adapter(3, "one", seed=2)]) == [(with_two, 0)]


@pytest.mark.parametrize("disk_engine", ["images"], indirect=True)
def test_a_prompt_with_another_image_is_another(disk_engine: DiskEngine, tmp_path: Path) -> None:
    from PIL import Image  # noqa: PLC0415 - only this test sees

    chance = np.random.default_rng(1)
    ids = [*prompt(40, 1), IMAGE_ID, *prompt(100, 2)]
    before_image, whole = 32, (len(ids) - 1 + IMAGE_TOKENS) // 32 * 32
    asked = [
        Asked(ids, image=Image.fromarray(chance.integers(256, size=(PIXELS, PIXELS, 3), dtype=np.uint8)))
        for _ in range(3)
    ]
    cold = []
    for number, each in enumerate(asked):
        disk_engine.restart(tmp_path / str(number))
        cold += found(disk_engine, [each])
    assert [cached for _, cached in cold] == [0, 0, 0]
    tokens = tokens_of(cold)
    assert len({tuple(token) for token in tokens}) == 3, "images do not matter"

    disk_engine.restart(tmp_path / "disk")
    for number, each in enumerate(asked[:2]):
        assert found(disk_engine, [each]) == [(tokens[number], before_image if number else 0)]
        disk_engine.restart(tmp_path / "disk")
    before = hits(disk_engine)
    assert found(disk_engine, asked[2:]) == [(tokens[2], before_image)]
    disk_engine.restart(tmp_path / "disk")
    assert found(disk_engine, asked[:2]) == [(tokens[0], whole), (tokens[1], whole)]
    # One chunk for the third, which is read once for both of the others; and what both have of their own.
    assert hits(disk_engine) - before == 1 + 1 + 2 * (whole - before_image) // 32


@pytest.mark.parametrize("disk_engine", ["images"], indirect=True)
def test_another_way_to_see_is_another_meaning(
    disk_engine: DiskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = disk_engine.connector._vllm_config.model_config
    meanings = [disk_engine.fingerprint]
    with monkeypatch.context() as patch:
        patch.setattr(model.multimodal_config, "mm_processor_kwargs", {"image_mean": [0.0, 0.0, 0.0]})
        meanings.append(disk_engine.fingerprint)
    assert disk_engine.fingerprint == meanings[0]
    (described,) = Path(model.model).glob("*processor_config.json")
    described.write_text(described.read_text() + " ")
    meanings.append(disk_engine.fingerprint)
    assert len(set(meanings)) == 3
