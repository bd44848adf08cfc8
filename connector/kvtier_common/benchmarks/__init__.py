"""What benchmarks of connector, operator and scorer have in common: workloads, answers, figures, axes."""
