"""What a run of the simulator shows: figures, a table, a plot."""
