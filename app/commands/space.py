"""`wattridge space`: how large a specification's search space is, and what each restriction removes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing, nullcontext

from ..engine.session.named import SPECIFICATION, specification_path
from .terminal import print_json, print_table, say, show


def space_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge space`."""
    parser.add_argument("specification", metavar="SPEC", help=SPECIFICATION)
    parser.add_argument("--gpu", metavar="GPU", help="the board whose limits and clocks count")


def space(arguments: Namespace) -> int:
    """The size of a specification's space, and what each restriction removes."""
    from ..engine.session.load import load_specification
    from ..engine.session.planning import space_of
    from ..engine.space.search_space import pruning_steps
    from ..sensors.select import open_gpu

    specification = load_specification(specification_path(arguments.specification))
    with nullcontext() if arguments.gpu is None else closing(open_gpu(arguments.gpu)) as gpu:
        built = space_of(specification, gpu)
    steps = pruning_steps(built)
    if arguments.json:
        print_json(
            {
                "cartesian": built.cartesian,
                "valid": built.size,
                "seconds": built.build_seconds,
                "removed_by": dict(built.removed_by),
                "removed_share_by": {step.restriction: step.share for step in steps},
                "values": {parameter.name: len(parameter.values) for parameter in built.parameters},
                "notes": list(built.notes),
            }
        )
        return 0
    for note in built.notes:
        say(note)
    show(f"{built.size} valid of {built.cartesian} combinations ({built.build_seconds * 1e3:.0f} ms)")
    if steps:
        show()
        rows = [[step.restriction, step.removed, round(100 * step.share, 1), step.after] for step in steps]
        print_table(rows, ("restriction, in the order applied", "removed", "% of those left", "left"))
    show()
    values = [[p.name, len(p.values), p.values[0], p.values[-1]] for p in built.parameters]
    print_table(values, ("parameter", "values", "first", "last"))
    return 0
