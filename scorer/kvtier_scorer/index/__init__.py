"""The prefix index: which pod holds which prefix, in which tier.

`chain` turns a prompt into chained block hashes, `prefix_index` remembers who holds them. Both run compiled
kernels over flat arrays; call `load_kernels()` of `prefix_index` once at the start, so that no request waits
for them.
"""
