"""Who asks an address that somebody else gave follows no redirect from there."""

import ast
import inspect
from pathlib import Path

import kvtier_common
import kvtier_operator.reconcile
import kvtier_operator.runtime.process
import kvtier_scorer.picker

PACKAGES = (kvtier_common, kvtier_operator.reconcile, kvtier_operator.runtime.process, kvtier_scorer.picker)
ASKING = {"get", "post", "put", "patch", "delete", "head", "options", "request", "ws_connect"}


def calls() -> list[tuple[str, ast.Call]]:
    """Requests of aiohttp's sessions, which follow redirects unless they are told not to."""
    found = []
    for package in PACKAGES:
        for path in Path(inspect.getfile(package)).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    receiver = ast.unparse(node.func.value)
                    if node.func.attr in ASKING and receiver.endswith("session"):
                        found.append((f"{path.name}: {receiver}", node))
    return found


def test_no_redirect_is_followed_unseen() -> None:
    told = {
        where: any(
            keyword.arg == "allow_redirects" and ast.unparse(keyword.value) == "False"
            for keyword in call.keywords
        )
        for where, call in calls()
    }
    assert told == {
        "answer.py: session": True,
        "tokenizers.py: self._session": True,
        "process.py: session": True,
        "huggingface.py: session": True,
    }
