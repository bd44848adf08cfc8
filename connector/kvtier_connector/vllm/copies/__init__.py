"""Copies between a device and the tier's memory."""
