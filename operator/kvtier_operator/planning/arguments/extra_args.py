"""How vLLM reads spec.engine.extraArgs: underscores for dashes, values after `=` or alone, short names.

Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser), 0.32 and 0.33.
"""

from typing import Final

FIELD: Final = "spec.engine.extraArgs"
WHOLE: Final = frozenset({"-dc", "-dp", "--data-parallel-size", "--kv-cache-dtype"})
"""Options of vLLM that are the beginning of one that is asked for here: --diffusion-config, of -dcp, and
the size of data parallelism, of -dpl and --data-parallel-size-local."""
_ONE_LETTER: Final = 2


def means_option(word: str, option: str) -> bool:
    """Tell whether vLLM takes a word for an option, such as `--max-model-le=1` for `--max-model-len`.

    argparse takes the beginning of a name where only one option begins so. Where several do, vLLM ends at
    once, so nothing is lost if such a word is taken for one of them here.

    Args:
        word: one of spec.engine.extraArgs.
        option: the whole name, with its dashes.
    """
    if word.startswith("-O"):  # -O3 is --optimization-level 3, so what follows is a word of its own
        word = word[2:].removeprefix("=")
    name = word.partition("=")[0].partition(".")[0]
    if name.startswith("--"):
        name = name.replace("_", "-")
    if not name.strip("-") or name in WHOLE:
        return name == option
    if len(option) == _ONE_LETTER and not name.startswith("--"):
        return name.startswith(option)  # -n2 is -n 2
    return option.startswith(name)


def value_of(extra_args: list[str], option: str) -> str | None:
    """Return the value that is given to an option; the last one counts."""
    value = None
    for position, word in enumerate(extra_args):
        if not means_option(word, option):
            continue
        _, is_joined, joined = word.partition("=")
        if is_joined:
            value = joined
        elif position + 1 < len(extra_args):
            value = extra_args[position + 1]
    return value


def field_path_of(extra_args: list[str], *options: str) -> str:
    """Path of the last item that gives one of these options; of the whole list where none does."""
    places = [
        f"{FIELD}[{position}]"
        for position, word in enumerate(extra_args)
        if any(means_option(word, option) for option in options)
    ]
    return places[-1] if places else FIELD


def is_on(extra_args: list[str], option: str) -> bool:
    """Tell whether an option that takes no value is on: it and its `--no-` form may both be given."""
    return switch_value(extra_args, option) or False


def switch_value(extra_args: list[str], option: str) -> bool | None:
    """Return how an option that takes no value is set; None where vLLM is left to decide."""
    on = None
    for word in extra_args:
        if means_option(word, option):
            on = True
        elif means_option(word, option.replace("--", "--no-", 1)):
            on = False
    return on
