"""The disk tier behind the one in memory."""
