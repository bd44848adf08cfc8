"""The CPU tier that engines of several files have, and what they are asked."""

from tests.engine.connector.prompts import prompt

from kvtier_connector.config import MIB, ConnectorConfig, Policy

# A chunk of 32 tokens has 32 KiB in the tiny model: the tier holds 128 of them, the device 48.
TIER = ConnectorConfig(cpu_capacity_bytes=4 * MIB, hugepages=Policy.NEVER)
KNOWN = prompt(480)
# The first keeps the engine busy until all are there; the others share a prefix that the tier knows.
TOGETHER = [
    prompt(760),
    KNOWN + prompt(90, 1),
    KNOWN[:320] + prompt(13, 2),
    KNOWN + prompt(40, 3),
]
