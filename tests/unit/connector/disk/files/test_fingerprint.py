"""Blocks of another model, layout or format are another engine's; damage is found."""

from pathlib import Path

import pytest

from kvtier_connector.core.disk.files.fingerprint import bound_checksum, changed_facts, fingerprint

FACTS = {"model": {"name": "Qwen/Qwen3-32B", "revision": "abc"}, "dtype": "bfloat16", "ranks": 2}


def test_the_order_of_facts_does_not_matter() -> None:
    turned = {"ranks": 2, "dtype": "bfloat16", "model": {"revision": "abc", "name": "Qwen/Qwen3-32B"}}
    assert fingerprint(turned) == fingerprint(FACTS)


@pytest.mark.parametrize(
    "changed",
    [
        {"dtype": "float16"},
        {"ranks": "2"},
        {"model": {"name": "Qwen/Qwen3-32B", "revision": "abf"}},
        {"rope": None},
        {"format": 2},
    ],
    ids=str,
)
def test_every_fact_counts(changed: dict[str, object]) -> None:
    other = fingerprint({**FACTS, **changed})
    assert other.text != fingerprint(FACTS).text
    assert other.folder != fingerprint(FACTS).folder


def test_it_names_a_folder_and_says_what_is_in_it() -> None:
    found = fingerprint(FACTS)
    assert found.folder == f"{found.number:016x}"
    assert found.text.splitlines()[0] == '"dtype": "bfloat16"'


def test_a_fact_without_a_lasting_text_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        fingerprint({"path": Path()})


def test_what_tells_two_apart_is_said_where_it_is_short() -> None:
    before = fingerprint({"vllm": "0.32", "config": {"a": "x" * 50}, "dtype": "bfloat16", "gone": 1}).text
    now = fingerprint({"vllm": "0.33", "config": {"a": "y" * 50}, "dtype": "bfloat16", "new": None}).text
    assert changed_facts(before, now) == {
        "config": "",
        "gone": "1 -> none",
        "new": "none -> null",
        "vllm": '"0.32" -> "0.33"',
    }
    assert changed_facts(now, now) == {}
    assert changed_facts("anything else", now) == {}


def test_what_somebody_else_wrote_in_its_place_makes_no_long_line_and_no_second_one() -> None:
    now = fingerprint({"vllm": "0.33"}).text
    forged = [
        f'"{"n" * 41}": 1',
        '"line\\nbreak": 1',
        '"vllm": "\\n\\u001b[2J"',
        *map('"f{0}": 0'.format, range(9999)),
    ]
    said = changed_facts("\n".join(forged), now)
    assert said["vllm"] == '"\\n\\u001b[2J" -> "0.33"'
    assert len(said) < 70
    assert all(name.isprintable() and len(name) <= 40 for name in said)


BLOCK = bytes(range(256)) * 16


def test_it_changes_with_every_bit_of_a_block() -> None:
    right = bound_checksum(1, b"key", BLOCK)
    for place in range(len(BLOCK)):
        for bit in range(8):
            damaged = bytearray(BLOCK)
            damaged[place] ^= 1 << bit
            assert bound_checksum(1, b"key", damaged) != right


def test_another_blocks_bytes_are_refused_though_they_are_whole() -> None:
    found = {
        bound_checksum(namespace, key, BLOCK) for namespace in (1, 2) for key in (b"key", b"yek", b"key\0")
    }
    assert len(found) == 6
