"""Bodies of any shape, with the fields of every API among theirs."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

FIELDS: Final = (
    "model", "messages", "prompt", "input", "role", "content", "type", "text", "cache_salt", "tools", "id",
    "instructions", "prompt_embeds", "chat_template", "chat_template_kwargs", "name", "documents",
    "functions", "reasoning", "reasoning_effort", "status", "refusal", "thinking", "image_url", "tool_calls",
    "add_special_tokens", "priority",
)  # fmt: skip
KINDS: Final = (
    "text", "input_text", "refusal", "thinking", "image_url", "item_reference", "user", "message",
)  # fmt: skip


def values(scalars: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """JSON values of these scalars."""
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        ),
        max_leaves=12,
    )


def bodies(values: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    """Objects whose fields have these values, or conversations of them."""
    parts = st.fixed_dictionaries(
        {"type": values}, optional=dict.fromkeys(("text", "refusal", "image_url"), values)
    )
    messages = st.fixed_dictionaries(
        {
            "role": st.one_of(st.sampled_from(KINDS), values),
            "content": st.one_of(values, st.lists(parts, max_size=3)),
        }
    )
    conversations = st.lists(st.one_of(messages, values), max_size=3)
    fields = {"messages": conversations, "input": conversations} | dict.fromkeys(FIELDS[4:], values)
    return st.one_of(
        st.dictionaries(st.sampled_from(FIELDS), values, max_size=6),
        st.fixed_dictionaries({}, optional=fields),
    )
