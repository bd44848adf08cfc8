"""`python -m kvtier_operator.runtime.measure.offline_worker JOB RESULT`: one engine, all prompts, twice.

An engine in a process of its own: nothing of one backend can be left for the next. JOB and RESULT are JSON
files, the keywords of `OfflineJob` and of `OfflineTimes`.
"""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from kvtier_operator.runtime.measure.offline import OfflineJob, OfflineTimes


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
