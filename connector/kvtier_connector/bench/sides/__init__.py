"""On a GPU: no tier, vLLM's own connector and kvtier's, one engine at a time, in turns."""
