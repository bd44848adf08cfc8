from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.simulate.pools import asked, prompts, timed, tokens_of, trace

from kvtier_scorer.simulate.blocks import ONCE, blocks_of, first_tokens, prompt_token_ids


@given(prompts(), st.integers(1, 40))
def test_prompts_share_as_many_numbers_as_they_share_full_blocks(
    given_prompts: list[list[tuple[str, int]]], block_tokens: int
) -> None:
    blocks = blocks_of(timed(given_prompts), block_tokens)
    texts = [tokens_of(prompt) for prompt in given_prompts]
    for one, first in enumerate(texts):
        own = blocks.of(one).tolist()
        assert len(own) == len(first) // block_tokens
        for place, number in enumerate(own):
            end = (place + 1) * block_tokens
            holders = [other for other, text in enumerate(texts) if text[:end] == first[:end]]
            assert (number == ONCE) == (holders == [one])
            for other, text in enumerate(texts):
                same = len(text) >= end and text[:end] == first[:end]
                theirs = blocks.of(other).tolist()
                assert (number != ONCE and place < len(theirs) and theirs[place] == number) == (
                    same and len(holders) > 1
                )


@given(prompts())
def test_a_number_is_one_block_in_all_prompts(given_prompts: list[list[tuple[str, int]]]) -> None:
    blocks = blocks_of(timed(given_prompts), 16)
    texts = [tokens_of(prompt) for prompt in given_prompts]
    seen: dict[int, list[tuple[str, int]]] = {}
    for request, text in enumerate(texts):
        for place, number in enumerate(blocks.of(request, with_rest=True).tolist()):
            if number != ONCE:
                assert 0 <= number < blocks.named
                start = text[: (place + 1) * 16]
                assert seen.setdefault(number, start) == start


@given(prompts())
def test_token_ids_are_equal_as_far_as_prompts_are(given_prompts: list[list[tuple[str, int]]]) -> None:
    found = timed(given_prompts)
    starts = first_tokens(found)
    ids = [prompt_token_ids(found, request, starts).tolist() for request in range(len(found))]
    texts = [tokens_of(prompt) for prompt in given_prompts]
    for one, first in enumerate(texts):
        assert len(ids[one]) == len(first)
        for other, second in enumerate(texts):
            shortest = min(len(first), len(second))
            for end in range(1, shortest + 1):
                assert (ids[one][:end] == ids[other][:end]) == (first[:end] == second[:end])


def test_the_rest_of_a_prompt_counts_where_asked_for_and_prompts_are_cut_off() -> None:
    found = trace(asked(("a", 40), at_s=0), asked(("a", 40), at_s=1), asked(("a", 40), ("b", 3), at_s=2))
    blocks = blocks_of(found, 16)
    assert blocks.of(0).tolist() == [0, 1]
    assert blocks.of(0, with_rest=True).tolist() == blocks.of(1, with_rest=True).tolist() == [0, 1, 2]
    assert blocks.of(2, with_rest=True).tolist() == [0, 1, ONCE]
    assert blocks.of(2, 1).tolist() == [0]


def test_models_share_nothing() -> None:
    found = trace(asked(("a", 40), at_s=0), asked(("a", 40), at_s=1, model="n"))
    assert blocks_of(found, 16).of(0).tolist() == [ONCE, ONCE]
