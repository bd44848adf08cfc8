"""N long prompts through an engine twice: what the second run saves (LMCache's cpu-offloading example).

`python -m kvtier_operator.runtime.offline JOB RESULT` is the engine, in a process of its own: nothing of one
backend can be left for the next. JOB and RESULT are JSON files, the keywords of `OfflineJob` and
`OfflineTimes`.
"""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.plan import EnginePlan
from kvtier_operator.runtime.process import Command, SupervisedProcess, death
from kvtier_operator.runtime.session import materialise
from kvtier_operator.runtime.translate import Placement, to_local

_WORKER: Final = "kvtier_operator.runtime.offline"
# Arguments of the server, which an engine without one does not know.
_SERVER_ARGUMENTS: Final = ("--host", "--port")


@dataclass(frozen=True, slots=True)
class OfflineJob:
    """What one engine is to do.

    Attributes:
        engine_args: vLLM's engine arguments, as on a command line.
        prompts: The prompts of one run.
        max_tokens: Tokens to generate for each.
    """

    engine_args: tuple[str, ...]
    prompts: tuple[str, ...]
    max_tokens: int = 1


@dataclass(frozen=True, slots=True)
class OfflineTimes:
    """What one engine took.

    Attributes:
        first_run_s: All prompts, none seen before.
        second_run_s: All prompts again.
        prompt_tokens: Tokens of the second run's prompts.
        cached_tokens: Of these, tokens that came from a cache.
        outputs_equal: Whether both runs generated the same.
    """

    first_run_s: float
    second_run_s: float
    prompt_tokens: int
    cached_tokens: int
    outputs_equal: bool

    @property
    def speedup(self) -> float:
        """First run over second."""
        return self.first_run_s / self.second_run_s

    def to_json(self) -> dict[str, Any]:
        """The figures, for a program."""
        return {**asdict(self), "speedup": self.speedup}


def offline_prompts(count: int, tokens: int) -> tuple[str, ...]:
    """The example's prompts: a number, so that no two begin alike, and a word of one token, repeated."""
    return tuple(f"[Prompt {number}] " + "the " * tokens + "how are you?" for number in range(count))


async def run_offline(
    plan: EnginePlan, name: str, model: Path | None, folder: Path, prompts: Iterable[str]
) -> OfflineTimes:
    """Run one engine in a process of its own.

    Raises:
        RuntimeFailedError: The engine failed; with its log's relevant lines.
    """
    place = Placement(name=name, host="127.0.0.1", port=0, folder=folder / name, model=model)
    local = to_local(plan, place, program=())
    materialise(local)
    job = OfflineJob(engine_args=_without_server(local.engine.argv), prompts=tuple(prompts))
    job_path, result_path = folder / f"{name}.job.json", folder / f"{name}.result.json"
    job_path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    command = Command(
        name=name,
        argv=(sys.executable, "-P", "-m", _WORKER, str(job_path), str(result_path)),
        env=local.engine.env,
        not_inherited=local.engine.not_inherited,
    )
    async with SupervisedProcess(command, folder / f"{name}.log") as process:
        if await process.wait() != 0:
            raise death(process, "while it was generating")
    try:
        return OfflineTimes(**json.loads(result_path.read_text(encoding="utf-8")))
    except OSError as error:
        raise RuntimeFailedError(f"{name} wrote no result; its log: {process.log_path}") from error


def _without_server(arguments: tuple[str, ...]) -> tuple[str, ...]:
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in _SERVER_ARGUMENTS:
            skip = True
        else:
            kept.append(argument)
    return tuple(kept)


def main(job_path: str, result_path: str) -> None:
    """Run the job of one file and write its times to the other."""
    job = OfflineJob(**json.loads(Path(job_path).read_text(encoding="utf-8")))

    from vllm import LLM, EngineArgs, SamplingParams  # noqa: PLC0415 - takes ten seconds, after the job is read
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415 - as above

    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    engine = LLM.from_engine_args(EngineArgs.from_cli_args(parser.parse_args(list(job.engine_args))))
    sampling = SamplingParams(temperature=0.0, max_tokens=job.max_tokens)
    seconds, texts = [], []
    for _ in range(2):
        start = time.perf_counter()
        outputs = engine.generate(list(job.prompts), sampling, use_tqdm=False)
        seconds.append(time.perf_counter() - start)
        texts.append([output.outputs[0].text for output in outputs])
    times = OfflineTimes(
        first_run_s=seconds[0],
        second_run_s=seconds[1],
        prompt_tokens=sum(len(output.prompt_token_ids) for output in outputs),
        cached_tokens=sum(output.num_cached_tokens or 0 for output in outputs),
        outputs_equal=texts[0] == texts[1],
    )
    Path(result_path).write_text(json.dumps(asdict(times)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
