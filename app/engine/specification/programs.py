"""What starting a specification runs besides its kernels. Loading, looking at it and building its space run nothing."""

from __future__ import annotations

from ...plain_text import shortened
from .model import OF_THE_HOST, Specification

_MOST = 200  # characters of a command that are shown


def programs_of(spec: Specification) -> tuple[str, ...]:
    """One line for each program, to be shown before a start; empty where a start runs none."""
    kernel = spec.kernel
    lines = []
    if spec.command is not None:
        lines.append(("each configuration", spec.command.run))
    if kernel is not None and kernel.generator:
        lines.append(("for the source of each configuration", kernel.generator))
    if kernel is not None and kernel.verify is not None and kernel.verify.command:
        lines.append(("to check each output", kernel.verify.command))
    for selector in spec.meters.selectors:
        if selector.startswith("command:"):
            lines.append(("as a meter beside the board", selector.removeprefix("command:")))
    said = [f"starting it runs, {when}: {shortened(command, _MOST)}" for when, command in lines]
    if kernel is not None and kernel.language in OF_THE_HOST:
        said.append(f"starting it runs {kernel.name} of its source as a program on this computer")
    return tuple(said)
