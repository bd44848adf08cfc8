"""Which images an engine's pod runs, where a cluster has them from, and which vLLM is in one."""
