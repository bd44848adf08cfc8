"""An engine whose connector each request takes out or puts back: `python -m` of this file is its process.

See `switch`, which vLLM imports; this file does not, so that the caller needs no vLLM.
"""

import sys
from typing import TYPE_CHECKING, Any, Final

from kvtier_connector.bench import engine, load
from kvtier_connector.bench.engine import serve

if TYPE_CHECKING:
    from vllm import LLM

_MODULE: Final = "tests.bench.connector.switch"
SWITCH: Final = {
    "scheduler_cls": f"{_MODULE}.SwitchScheduler",
    "worker_extension_cls": f"{_MODULE}.SwitchWorker",
}
"""Settings of such an engine; its questions have `connected` besides."""
EMPTY: Final = {
    "kv_connector": "EmptyConnector",
    "kv_role": "kv_both",
    "kv_connector_module_path": _MODULE,
}
"""The connector that does nothing."""


def answer(llm: "LLM", question: dict[str, Any]) -> dict[str, Any]:
    """Answer a question of `engine` or `load`."""
    from tests.bench.connector.switch import switch  # noqa: PLC0415 - imports vLLM

    extra_args = switch(llm, connected=question.pop("connected"))
    if "workload" in question:
        return load.answer(llm, question, extra_args)
    return engine.answer(llm, question, extra_args)


def main() -> None:
    """Serve one engine, as `bench_engine` asks it."""
    pipe, llm = engine.start_llm(sys.argv[1:])
    serve(pipe, lambda question: answer(llm, question))


if __name__ == "__main__":
    main()
