"""The status of a resource: conditions of the plan, the engines and the router; `build.py` has all of it."""
