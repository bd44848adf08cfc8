"""gRPC over HTTP/2, the server's side (grpc/doc/PROTOCOL-HTTP2.md): calls, messages, statuses, health."""
