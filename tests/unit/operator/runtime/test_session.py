"""What a run leaves behind; engines that serve are seen in tests/engine/runtime."""

import asyncio
from pathlib import Path

from kvtier_operator.planning.base.container_parts import EnginePlan, Mount
from kvtier_operator.runtime.process import free_ports
from kvtier_operator.runtime.session import RunOptions, Session


def plan(*mounts: Mount) -> EnginePlan:
    return EnginePlan("", ("org/model",), {}, (), (), mounts, (), 8000)


def test_volumes_that_go_with_a_pod_go_with_the_run(tmp_path: Path) -> None:
    volume = tmp_path / "run" / "engine-0" / "volumes" / "kv-disk-0"
    [port] = free_ports(1, "127.0.0.1")
    options = RunOptions("127.0.0.1", port, tmp_path / "run", program=("true",))

    async def run() -> None:
        async with Session(options, plan(Mount("kv-disk-0", "/disk", {"emptyDir": {}})), 1):
            assert volume.is_dir()

    asyncio.run(run())
    assert not volume.exists()
    assert (tmp_path / "run").is_dir()
