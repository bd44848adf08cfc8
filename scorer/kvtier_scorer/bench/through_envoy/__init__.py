"""Pickers side by side behind one real Envoy: requests a second and how long a request takes.

What runs the pickers, Envoy and the engines is the tests' (tests/picker/bench.py): the product has no tools
that only a comparison needs. Here are the load, the rounds and the figures.
"""
