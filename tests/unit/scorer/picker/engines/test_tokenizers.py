"""How tokens are found: from a file, and from engines of which some are left alone for a while."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.engines.tokenizers import CircuitBreaker, FileTokenizer
from kvtier_scorer.picker.gateway.bodies import read_prompt


class Turning:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_waiting_doubles_up_to_a_minute_and_one_request_tries_each_time() -> None:
    clock = Turning()
    breaker = CircuitBreaker(clock)
    for _ in range(3):
        assert breaker.try_acquire("a")
        breaker.on_failure("a")
    assert breaker.open_count == 1
    waits = []
    for _ in range(8):
        before = clock.now_s
        while not breaker.try_acquire("a"):
            clock.now_s += 0.5
        assert not breaker.try_acquire("a")
        waits.append(clock.now_s - before)
        breaker.on_failure("a")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert breaker.try_acquire("b")


def test_those_that_were_asked_together_count_as_one_trouble() -> None:
    clock = Turning()
    breaker = CircuitBreaker(clock)
    for _ in range(100):
        breaker.on_failure("a")
    assert breaker.open_count == 1
    clock.now_s = 1.0
    assert breaker.open_count == 0
    assert breaker.try_acquire("a")
    breaker.on_success("a")
    assert (breaker.open_count, breaker.try_acquire("a"), breaker.try_acquire("a")) == (0, True, True)


def test_pods_without_end_are_not_all_remembered() -> None:
    breaker = CircuitBreaker(Turning())
    for pod in range(5000):
        for _ in range(3):
            breaker.on_failure(str(pod))
    assert breaker.open_count == 4096


WORDS = {"<s>": 0, "one": 1, "two": 2, "three": 3}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="<s>"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


async def tokens(path: Path, api: str, **body: Any) -> list[int] | None:  # noqa: ANN401 - any field
    body = {"model": "m", **body}
    tokenizer = FileTokenizer(path)
    question = tokenizer.tokenize_request(read_prompt(f"/v1/{api}", json.dumps(body).encode()), body)
    found = None if question is None else await tokenizer.tokenize(question)
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("api", "body", "expected"),
    [
        ("completions", {"prompt": "one two"}, [0, 1, 2]),
        ("completions", {"prompt": "one two", "add_special_tokens": False}, [1, 2]),
        ("completions", {"prompt": ["one", "two"]}, None),
        ("completions", {"prompt_embeds": "AAAA"}, None),
        ("chat/completions", {"messages": [{"role": "user", "content": "one"}]}, None),
        ("chat/completions", {"messages": [{"role": "user", "content": "one"}], "prompt": "two"}, None),
        ("responses", {"input": "one", "prompt": "two"}, None),
        ("embeddings", {"input": "one", "prompt": "two"}, None),
    ],
)
async def test_only_a_completions_own_text_is_tokenized(
    path: Path, api: str, body: dict[str, Any], expected: list[int] | None
) -> None:
    assert await tokens(path, api, **body) == expected


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b'{"model": 1}'])
def test_another_file_is_told_of(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PickerConfigError, match=f"tokenization.path: {path} is not a tokenizer.json: "):
        FileTokenizer(path)
