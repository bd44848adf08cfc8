"""`python -m kvtier_operator.cli`: the `kvtier` command of this very Python."""

from kvtier_operator.cli.main import main

if __name__ == "__main__":
    main()
