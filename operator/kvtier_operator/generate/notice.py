"""What the first line of every generated file says."""


def notice(source: str) -> str:
    """The line without its comment signs.

    Args:
        source: What it is made from, from the repository's root.
    """
    return f"Generated from {source}, do not edit: run `make generate`."
