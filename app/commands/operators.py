"""`wattridge operators`: the operators that can be tuned by kind and shape, with examples."""

from __future__ import annotations

from argparse import Namespace

from ..engine.specification.operator_shapes import AXES, EPILOGUES, EXAMPLES, LAYOUTS, MEANINGS, PRECISIONS
from .terminal import print_json, print_table, show


def operators(arguments: Namespace) -> int:
    """Every kind with its axes, and the shapes of the literature."""
    examples = [
        {
            "name": name,
            "operator": item.notation,
            "kind": item.kind,
            "shape": list(item.shape),
            "work_flop": item.work_flop,
            "least_byte": item.least_byte,
        }
        for name, item in EXAMPLES.items()
    ]
    if arguments.json:
        kinds = {kind: {"shape": list(axes), "meaning": MEANINGS[kind]} for kind, axes in AXES.items()}
        of_halves = {"layouts": dict(LAYOUTS), "epilogues": list(EPILOGUES[1:])}
        print_json({"kinds": kinds, "precisions": list(PRECISIONS), **of_halves, "examples": examples})
        return 0
    print_table(
        [(kind, ", ".join(axes), MEANINGS[kind]) for kind, axes in AXES.items()], ("kind", "shape", "what it is")
    )
    show()
    rows = [
        (name, item.notation, round(item.work_flop / 1e9, 3), round(item.least_byte / 1e6, 3))
        for name, item in EXAMPLES.items()
    ]
    print_table(rows, ("example", "operator", "GFLOP", "MB at least"))
    show("", f"Precisions: {', '.join(PRECISIONS)}. `wattridge tune mm:1,512,512,512 --gpu simulated:h200` tunes one.")
    show(f"Products of halves have a layout ({', '.join(LAYOUTS)}) and an epilogue ({', '.join(EPILOGUES[1:])}):")
    show("mm:1,16,4096,4096:bf16:nt:bias+gelu, where 'nt' is that both operands are contiguous along K.")
    return 0
