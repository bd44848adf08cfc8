"""What is in the wheel: the product, and nothing that only its tests or its own figures need."""

import ast
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

PACKAGES = {"kvtier_common", "kvtier_connector", "kvtier_operator", "kvtier_scorer"}
NOT_SHIPPED = {"lmcache", "pytest", "hypothesis", "tests"}
PEERS = {"fio", "lmcache_disk", "lmcache_install", "vllm_fs", "through_envoy"}


def sources(wheel: Path) -> Iterator[tuple[str, str]]:
    with ZipFile(wheel) as opened:
        for name in opened.namelist():
            if name.endswith(".py"):
                yield name, opened.read(name).decode()


def imported(source: str) -> Iterator[str]:
    """The top packages that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_its_packages_are_the_product_s(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        tops = {name.partition("/")[0] for name in opened.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


def test_it_imports_nothing_that_is_not_shipped_with_it_or_asked_for(wheel: Path) -> None:
    found = {name: NOT_SHIPPED & {*imported(source)} for name, source in sources(wheel)}
    assert {name: packages for name, packages in found.items() if packages} == {}


def test_what_compares_it_with_others_stays_in_the_repository(wheel: Path) -> None:
    found = {name for name, _ in sources(wheel) if PEERS & {*Path(name).with_suffix("").parts}}
    assert found == set()
