"""The planner: pure functions from (spec, observed) to a Plan. No I/O, no client, no clock."""
