"""`python -m kvtier_scorer.picker`: the same as `kvtier picker`; `model-router` is what reads models."""

import sys

from kvtier_scorer.picker.command import model_router, picker

if __name__ == "__main__":
    help_options = {"help_option_names": ["-h", "--help"]}
    if sys.argv[1:2] == [model_router.name]:
        model_router(sys.argv[2:], **help_options)
    else:
        picker(**help_options)
