"""HTTP/2 as a gRPC server needs it, without I/O (RFC 9113; header blocks by the hpack library).

Why not a gRPC library: docs/development/adr/0017-own-http2-for-ext-proc.md. What is left out because no gRPC
client needs it: server push, priorities, upgrades from HTTP/1.1.
"""
