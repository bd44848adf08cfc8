"""The gRPC health service, asked as a probe of Kubernetes asks it."""

from typing import Final

import grpc

# grpc.health.v1.HealthCheckResponse with field 1, `status`, SERVING.
_SERVING: Final = b"\x08\x01"
_TIMEOUT_S: Final = 2.0


def is_serving(address: str, service: str = "") -> bool:
    """Whether a plaintext server says now that a service is healthy.

    Args:
        address: `host:port`.
        service: Name of the service; empty for the server itself.
    """
    # a name of up to 127 bytes is one length byte and itself, in field 1 of HealthCheckRequest
    request = b"" if not service else b"\x0a" + bytes([len(service)]) + service.encode()
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
        try:
            answer: bytes = check(request, timeout=_TIMEOUT_S)
        except grpc.RpcError:
            return False
        return answer == _SERVING
