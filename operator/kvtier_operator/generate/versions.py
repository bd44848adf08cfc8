"""docs/reference/vllm-versions.md: the releases of vLLM that the tests run."""

from pathlib import Path
from typing import Final

from kvtier_connector.supported import TESTED_RELEASES
from kvtier_operator.generate.notice import notice

_PAGE: Final = Path(__file__).with_name("versions.md")


def versions_page() -> str:
    """The whole page."""
    rows = "".join(f"| {minor} | {release} |\n" for minor, release in TESTED_RELEASES.items())
    table = f"| Minor | Last release that the tests have run |\n|---|---|\n{rows}"
    text = _PAGE.read_text(encoding="utf-8").format(table=table)
    return f"<!-- {notice('connector/kvtier_connector/supported.py')} -->\n{text}"
