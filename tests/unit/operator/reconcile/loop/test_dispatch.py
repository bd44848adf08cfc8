"""Whose turn it is: a namespace with many resources keeps none with few waiting."""

import asyncio

from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.loop.dispatch import Dispatcher, ReconcileResult

_WORKERS = 4


def test_two_thousand_resources_of_one_namespace_do_not_hold_up_another_one() -> None:
    worked: list[Key] = []

    async def run() -> None:
        all_done = asyncio.Event()

        async def work(key: Key) -> ReconcileResult:
            worked.append(key)
            await asyncio.sleep(0)
            if len(worked) == 100:
                dispatcher.add(quiet)
            if len(worked) == 2001:
                all_done.set()
            return ReconcileResult.CHANGED

        async def tell(*_: object) -> None:
            raise AssertionError("a round failed")

        dispatcher = Dispatcher(work, tell, workers=_WORKERS)
        for number in range(2000):
            dispatcher.add(Key("crowd", f"tier-{number}"))
        running = asyncio.create_task(dispatcher.run())
        async with asyncio.timeout(30):
            await all_done.wait()
        running.cancel()

    quiet = Key("quiet", "tier")
    asyncio.run(run())
    assert worked.index(quiet) <= 100 + _WORKERS
