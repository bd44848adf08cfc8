"""HTTP/2 as a gRPC server needs it, without I/O (RFC 9113; header blocks by the hpack library).

Why not a gRPC library: see docs/development/picker-transport.md for the figures. What is left out because no
gRPC client needs it: server push, priorities, upgrades from HTTP/1.1.
"""
