"""One URL in front of several engines, as a gateway has it on a cluster: Envoy and kvtier's own picker."""
