"""`python -m kvtier_scorer.picker`: the same as `kvtier picker`, and what runs beside kvtier's gateway."""

import sys

from kvtier_scorer.picker.command import api_keys, model_router, picker

if __name__ == "__main__":
    help_options = {"help_option_names": ["-h", "--help"]}
    beside_gateway = {command.name: command for command in (model_router, api_keys)}
    if command := beside_gateway.get(sys.argv[1] if len(sys.argv) > 1 else None):
        command(sys.argv[2:], **help_options)
    else:
        picker(**help_options)
