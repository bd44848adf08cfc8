"""What gateways ask: Envoy's external processing, served."""
