"""Checks of the devices, the image and the processors of an engine."""
