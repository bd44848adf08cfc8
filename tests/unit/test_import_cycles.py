"""No two modules of the product import each other, at once or through others, wherever the import stands."""

from graphlib import CycleError, TopologicalSorter

import grimp

PACKAGES = ("kvtier_operator", "kvtier_common", "kvtier_connector", "kvtier_scorer")


def imported_cycle(graph: grimp.ImportGraph) -> list[str]:
    """Modules of which each imports the next, and the last is the first; empty where there are none."""
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_what_imports_it() -> None:
    assert imported_cycle(grimp.build_graph(*PACKAGES, cache_dir=None)) == []


def test_a_circle_of_three_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        graph.add_import(importer=importer, imported=imported)
    found = imported_cycle(graph)
    assert (len(found), {*found}) == (4, {"a", "b", "c"})
