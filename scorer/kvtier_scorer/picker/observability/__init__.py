"""What people and other programs see of the picker: metrics, logs, explanations."""
