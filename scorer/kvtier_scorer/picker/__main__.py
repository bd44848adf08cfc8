"""`python -m kvtier_scorer.picker`: the same as `kvtier picker`."""

from kvtier_scorer.picker.command import picker

if __name__ == "__main__":
    picker(help_option_names=["-h", "--help"])
