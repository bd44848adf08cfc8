"""What people and other programs see of the operator: its metrics, its health and its log."""
