"""What starting a specification runs besides its kernels. Loading, looking at it and building its space run nothing."""

from __future__ import annotations

from ...plain_text import shortened
from .model import OF_THE_HOST, Specification
from .service import ServiceSpec

_MOST = 200  # characters of a command that are shown


def programs_of(spec: Specification) -> tuple[str, ...]:
    """One line for each program, to be shown before a start; empty where a start runs none."""
    kernel = spec.kernel
    lines = []
    if spec.command is not None:
        lines.append(("each configuration", spec.command.run))
    if spec.service is not None:
        lines += _of_service(spec.service)
    if kernel is not None and kernel.generator:
        lines.append(("for the source of each configuration", kernel.generator))
    if kernel is not None and kernel.verify is not None and kernel.verify.command:
        lines.append(("to check each output", kernel.verify.command))
    for selector in spec.meters.selectors:
        if selector.startswith("command:"):
            lines.append(("as a meter beside the board", selector.removeprefix("command:")))
    said = [f"starting it runs, {when}: {shortened(command, _MOST)}" for when, command in lines]
    if spec.service is not None and not spec.service.client.run:
        client = spec.service.client
        also = [f"the prompts of {client.prompts}"] if client.prompts is not None else []
        also += [f"the key that {client.key_from} holds"] if client.key_from else []
        words = f", with {' and '.join(also)}" if also else ""
        said.append(f"starting it sends requests to {spec.service.attach or spec.service.url}{words}")
    if kernel is not None and kernel.language in OF_THE_HOST:
        said.append(f"starting it runs {kernel.name} of its source as a program on this computer")
    return tuple(said)


def _of_service(service: ServiceSpec) -> list[tuple[str, str]]:
    """Its commands, and the address that is asked."""
    lines = [("once, and again for each change of its arguments", service.start)]
    lines += [("to end the service", service.stop), ("as its client, for each configuration", service.client.run)]
    return [(when, command) for when, command in lines if command]
