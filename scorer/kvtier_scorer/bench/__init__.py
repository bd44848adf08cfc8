"""What users measure a server or a gateway with."""
