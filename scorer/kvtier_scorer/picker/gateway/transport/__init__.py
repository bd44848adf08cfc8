"""The picker's gRPC ports on grpcio's own server: limits, certificates, health."""
