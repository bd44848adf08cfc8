"""The figures of a workload that was served."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from kvtier_common.benchmarks import Workload, p90
from kvtier_scorer.bench.shared_prefix.engines import FoundTokens
from kvtier_scorer.bench.shared_prefix.load import LoadResult


@dataclass(frozen=True, slots=True)
class HitRate:
    """Prompt tokens found over prompt tokens asked for, by where they were found."""

    device: float
    tier: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run says.

    Attributes:
        name: What was measured.
        workload: What was asked.
        requests: Answered.
        failed: Not answered, with the first reason; these count in no other figure.
        seconds: From the first request to the last answer.
        ttft_s: Of every answer, waiting included, in the order sent.
        e2e_s: Likewise, until the last token.
        output_tokens_per_s: Generated tokens over `seconds`.
        tokens_per_s: Tokens of prompts and answers over `seconds`, the guide's "overall throughput".
        hit_rate: By the engines' own counters; None where they were not asked.
        engine_share: Part of all prompt tokens that each engine got; empty where they were not asked.
    """

    name: str
    workload: Workload
    requests: int
    failed: int
    failure: str
    seconds: float
    ttft_s: tuple[float, ...]
    e2e_s: tuple[float, ...]
    output_tokens_per_s: float
    tokens_per_s: float
    hit_rate: HitRate | None
    engine_share: tuple[float, ...]

    @classmethod
    def of(
        cls,
        name: str,
        workload: Workload,
        result: LoadResult,
        before: Mapping[str, FoundTokens],
        after: Mapping[str, FoundTokens],
    ) -> Self:
        """Figures of a run and of what its engines counted before and after it."""
        answers = [answer for answer in result.answers if not answer.error]
        failed = [answer for answer in result.answers if answer.error]
        output = sum(answer.output_tokens for answer in answers)
        prompt = sum(answer.prompt_tokens for answer in answers)
        counted = {url: after[url] - before[url] for url in after}
        total = sum(counted.values(), FoundTokens())
        known = total.queried > 0
        return cls(
            name=name,
            workload=workload,
            requests=len(answers),
            failed=len(failed),
            failure=failed[0].error if failed else "",
            seconds=result.seconds,
            ttft_s=tuple(answer.ttft_s for answer in answers),
            e2e_s=tuple(answer.e2e_s for answer in answers),
            output_tokens_per_s=output / result.seconds,
            tokens_per_s=(output + prompt) / result.seconds,
            hit_rate=HitRate(total.device / total.queried, total.tier / total.queried) if known else None,
            engine_share=tuple(each.queried / total.queried for each in counted.values()) if known else (),
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure with its mean and P90, and every sample."""
        summary = {}
        if self.requests:
            summary = {
                "ttft_mean_s": statistics.fmean(self.ttft_s),
                "ttft_p90_s": p90(self.ttft_s),
                "e2e_mean_s": statistics.fmean(self.e2e_s),
                "e2e_p90_s": p90(self.e2e_s),
            }
        return {**asdict(self), **summary}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Figures of an earlier run.

        Raises:
            KeyError: A figure is missing.
            TypeError: One is of another kind.
        """
        hit_rate = document["hit_rate"]
        return cls(
            name=str(document["name"]),
            workload=Workload(**document["workload"]),
            requests=int(document["requests"]),
            failed=int(document["failed"]),
            failure=str(document["failure"]),
            seconds=float(document["seconds"]),
            ttft_s=tuple(map(float, document["ttft_s"])),
            e2e_s=tuple(map(float, document["e2e_s"])),
            output_tokens_per_s=float(document["output_tokens_per_s"]),
            tokens_per_s=float(document["tokens_per_s"]),
            hit_rate=None if hit_rate is None else HitRate(**hit_rate),
            engine_share=tuple(map(float, document["engine_share"])),
        )
