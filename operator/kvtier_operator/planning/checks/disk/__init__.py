"""Checks of the disk tier and of the node's folders."""
