"""`wattridge new`: a specification to begin with, from the source of a CUDA or OpenCL kernel."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .terminal import print_json, say, show


def new_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge new`."""
    parser.add_argument(
        "source", metavar="KERNEL.cu", help="the source, or .cl in OpenCL; the specification is for its folder"
    )
    parser.add_argument("--kernel", metavar="NAME", help="the kernel, where the source has several (the first)")
    parser.add_argument("--out", metavar="FILE", help="write to this file, which must not exist, instead of printing")


def new(arguments: Namespace) -> int:
    """Print or write a specification of a kernel; what was guessed in it goes to standard error."""
    from ..base.files import write_text
    from ..engine.specification.new_document import from_kernel, kernel_called, read_kernels

    source = Path(arguments.source)
    scan = read_kernels(source)
    kernel, name = kernel_called(scan, arguments.kernel, source)
    folder = Path(arguments.out).absolute().parent if arguments.out else source.resolve().parent
    made = from_kernel(source, scan, kernel, folder, name)
    if arguments.out:
        write_text(Path(arguments.out), made.text)
    if arguments.json:
        kernels = [value for kernel in scan.kernels for value in kernel.names]
        document = {"kernel": made.name, "kernels": kernels, "specification": made.text}
        print_json({**document, "guessed": list(made.guessed), "missing": list(made.missing)})
        return 0
    if not arguments.out:
        show(*made.text.splitlines())
    for line in made.guessed:
        say(f"guessed: {line}")
    for line in made.missing:
        say(f"fill in: {line}")
    return 0
