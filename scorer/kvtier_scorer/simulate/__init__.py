"""Replays a trace of requests against simulated pods, once a policy: hit rate, TTFT and balance side by side.

`traces` read or generate requests, `engine` is the pods' model, `policies` choose pods. Nothing here reads a
clock or opens a socket: the same input and seed give the same figures.
"""
