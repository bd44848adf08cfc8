"""What a Grafana dashboard is made of, whoever is shown: panels, the document around them, the ConfigMap."""
