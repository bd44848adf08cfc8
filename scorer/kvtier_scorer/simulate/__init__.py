"""Replays a trace of requests against simulated pods, once a policy: hit rate, TTFT and balance side by side.

Nothing here reads a clock or opens a socket: the same input and seed give the same figures.
"""
