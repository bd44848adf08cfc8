"""What the demo measured and what follows from it; no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.measure.client import Answer
from kvtier_operator.runtime.measure.samples import Samples
from kvtier_operator.runtime.metrics import EngineMetrics

_MOSTLY: Final = 0.9
_MOST: Final = 5
_WARM_SAMPLES: Final = 15
# A later prompt may take this much longer than the first: seen 1.25 on a shared machine.
_SLOWER: Final = 1.25


class Kind(StrEnum):
    """Where a query's prefix came from."""

    COLD = "cold"
    WARM = "warm"
    DEVICE_HIT = "device hit"
    OFF = "tier off"
    OFF_DEVICE_HIT = "tier off, device hit"


@dataclass(frozen=True, slots=True)
class Sample:
    """One query.

    Attributes:
        kind: What it was meant to be.
        document: Index of the document asked about.
        answer: What came back, with its times.
        served: What the engine counted meanwhile: where the prompt's tokens came from.
    """

    kind: Kind
    document: int
    answer: Answer
    served: EngineMetrics

    def verify(self) -> None:
        """Make sure that the prefix came from where the kind says, by vLLM's own counters.

        Raises:
            RuntimeFailedError: It did not, so the figures would not mean what they say.
        """
        prompt = self.served.prompt_tokens
        shares = (
            {tier: tokens / prompt for tier, tokens in self.served.cached_tokens.items()} if prompt else {}
        )
        device, cpu = shares.get("device", 0.0), shares.get("cpu", 0.0)
        as_meant = {
            Kind.COLD: device + cpu < 1 - _MOSTLY,
            Kind.OFF: device + cpu < 1 - _MOSTLY,
            Kind.WARM: cpu > _MOSTLY,
            Kind.DEVICE_HIT: device > _MOSTLY,
            Kind.OFF_DEVICE_HIT: device > _MOSTLY,
        }[self.kind]
        if not prompt or not as_meant:
            raise RuntimeFailedError(
                f"the demo does not show what it should: a {self.kind} query had {device:.0%} of {prompt} "
                f"prompt tokens from the device cache and {cpu:.0%} from the CPU tier (vLLM's counters)"
            )


@dataclass(frozen=True, slots=True)
class DemoResult:
    """All samples of one demo.

    Attributes:
        samples: In the order taken.
        http_s: What HTTP and tokenization of one prompt cost by themselves, within every figure.
    """

    samples: tuple[Sample, ...]
    http_s: Samples

    def of(self, kind: Kind) -> tuple[Sample, ...]:
        """The samples of one kind."""
        return tuple(sample for sample in self.samples if sample.kind is kind)

    def ttft(self, kind: Kind) -> Samples:
        """Times to first token of one kind."""
        return Samples.of([sample.answer.ttft_s for sample in self.of(kind)])

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the shortest prompt."""
        return min(sample.served.prompt_tokens for sample in self.samples)

    @property
    def speedup(self) -> float:
        """Median time to first token cold over warm."""
        return self.ttft(Kind.COLD).median_s / self.ttft(Kind.WARM).median_s

    @property
    def over_device_hit(self) -> float:
        """Median time to first token warm over a device-cache hit."""
        return self.ttft(Kind.WARM).median_s / self.ttft(Kind.DEVICE_HIT).median_s

    @property
    def outputs_equal(self) -> bool:
        """Whether every greedy output is the cold query's, token for token, with the tier on and off."""
        cold = {sample.document: sample.answer.text for sample in self.of(Kind.COLD)}
        return all(sample.answer.text == cold[sample.document] for sample in self.samples)

    def to_json(self) -> dict[str, Any]:
        """The figures and every sample."""
        return {
            "query_twice": {
                "prompt_tokens": self.prompt_tokens,
                "cold_ttft_s": self.ttft(Kind.COLD).median_s,
                "device_hit_ttft_s": self.ttft(Kind.DEVICE_HIT).median_s,
                "warm_ttft_s": self.ttft(Kind.WARM).median_s,
                "off_ttft_s": self.ttft(Kind.OFF).median_s,
                "off_device_hit_ttft_s": self.ttft(Kind.OFF_DEVICE_HIT).median_s,
                "speedup": self.speedup,
                "over_device_hit": self.over_device_hit,
                "outputs_equal": self.outputs_equal,
                "http_and_tokenization_s": self.http_s.median_s,
            },
            "spread": {str(kind): self.ttft(kind).to_json() for kind in Kind},
            "samples": [_sample(sample) for sample in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often what is measured.

    Attributes:
        documents: Documents asked about, each cold once; at least 2.
        rounds: Times each document is asked warm.
        off_repeats: Recomputed repetitions with the tier off.
    """

    documents: int
    rounds: int
    off_repeats: int

    @property
    def samples(self) -> int:
        """Samples that come of it; the first query of each of two documents with the tier off is none."""
        return self.documents * (1 + 2 * self.rounds) + 2 * self.off_repeats


def repetitions(cold_s: float, left_s: float) -> Repetitions:
    """As many repetitions as fit: five of each, on a slow machine at least two cold, one tier off.

    Args:
        cold_s: What one computed prompt takes.
        left_s: Seconds left once the first cold prompt is answered.
    """
    computed = int(
        left_s / (cold_s * _SLOWER)
    )  # documents - 1 cold; with the tier off two first ones and the repeats
    documents = min(_MOST, max(2, computed // 2))
    off_repeats = min(_MOST, max(1, computed - documents - 1))
    return Repetitions(documents, -(-_WARM_SAMPLES // documents), off_repeats)


def plan_rounds(documents: int, rounds: int, off_repeats: int) -> Sequence[tuple[Kind, int]]:
    """The order of all queries.

    Cold queries with the tier on alternate with queries with the tier off, so that both see the same noise of
    the machine. With the tier off two documents take turns, each evicting the other: every repetition is
    computed again. Then each document is asked warm (the one before it has evicted it from the device) and at
    once again (now a device hit), `rounds` times.

    Args:
        documents: How many, at least 2.
        rounds: Times each document is asked warm.
        off_repeats: Recomputed repetitions with the tier off.

    Returns:
        Kind and document of each query; a document's first query with the tier off counts as cold.
    """
    off: list[list[tuple[Kind, int]]] = []
    for turn in range(off_repeats + 2):
        document = turn % 2
        repeated = turn > 1
        off.append([(Kind.OFF, document)] + ([(Kind.OFF_DEVICE_HIT, document)] if repeated else []))
    order: list[tuple[Kind, int]] = []
    for turn in range(max(documents, len(off))):
        if turn < documents:
            order.append((Kind.COLD, turn))
        if turn < len(off):
            order += off[turn]
    for _ in range(rounds):
        for document in range(documents):
            order += [(Kind.WARM, document), (Kind.DEVICE_HIT, document)]
    return order


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "kind": str(sample.kind),
        "document": sample.document,
        "ttft_s": sample.answer.ttft_s,
        "total_s": sample.answer.total_s,
        "prompt_tokens": sample.served.prompt_tokens,
        "cached_tokens": dict(sample.served.cached_tokens),
        "output": sample.answer.text,
    }
