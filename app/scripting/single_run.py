"""One launch of a script's kernel, in a process of its own, and what it has written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.runner.kernels.loaded import LoadedKernels
from ..engine.runner.kernels.process import KernelFailed
from ..engine.runner.languages import open_device, require_device
from ..engine.workloads.scripted_kernel import scripted_kernel
from ..engine.workloads.source_kernel import KernelRefused
from ..errors import InputError, WattridgeError
from ..sensors.gpu import Gpu
from ..standard_error import say
from .described_kernel import DescribedKernel


def run_once(
    kernel: DescribedKernel, board: Gpu, folder: Path, parameters: Mapping[str, Any], *, quiet: bool
) -> list[Any]:
    """All arguments after one launch: arrays as NumPy arrays, scalars as they were.

    Raises InputError where it cannot run on that board, WattridgeError where it fails.
    """
    if not board.info.real:
        raise InputError(f"a {board.info.source} GPU runs no kernels", board.info.label, "choose a real GPU")
    spec, described = kernel.spec, kernel.spec.kernel
    assert described is not None
    require_device(described, board, spec.name)
    arrays = tuple(replace(each, output=bool(each.shape) and each.memory == "global") for each in described.arguments)
    described = replace(described, arguments=arrays)
    spec = replace(spec, kernel=described)
    with ExitStack() as stack:
        device = stack.enter_context(closing(open_device(described, board, spec.name, scripted=True)))
        if not quiet:
            say(f"{spec.name} on {board.info.label}")
        gpu, language = device.gpu, device.language
        scripted = language.kernel(spec, partial(scripted_kernel, parts=kernel.parts))
        loaded = stack.enter_context(closing(LoadedKernels(gpu, language, described.timeout_s, lambda: None)))
        try:
            prepared = scripted.prepare(dict(parameters))
            loaded.load(spec.name, prepared, language.compiler.image(prepared.build))
            loaded.check(spec.name)
        except (KernelFailed, KernelRefused) as failure:
            raise WattridgeError(f"{failure.state}: {failure}", spec.name) from None
        except BaseException:  # a signal's: the launch may still take long
            gpu.stop.set()
            raise
        written = loaded.outputs()
    given = {each.name: each for each in described.arguments}
    return [written[n] if n in written else np.dtype(given[n].type).type(given[n].value) for n in kernel.names]
