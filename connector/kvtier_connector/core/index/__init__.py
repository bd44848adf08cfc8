"""What a tier holds: keys to slots, and which block leaves first."""
