"""Checks the machine or pod that an engine is about to start in; imports only what starts fast."""
