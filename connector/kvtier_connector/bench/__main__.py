"""`kvtier bench connector` where there is no such command: in vLLM's image with the connector beside it."""

import signal
import sys

from kvtier_connector.bench.command import connector

if __name__ == "__main__":
    # a container's first process ignores it otherwise, and the engines that it has started end with it
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    connector(prog_name="python3 -m kvtier_connector.bench")
