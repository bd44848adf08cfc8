"""What each of a model's layers keeps of a token or of a sequence."""
