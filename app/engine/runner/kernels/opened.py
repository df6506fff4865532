"""A device and a language that are open: what runs kernels, before it is known what is measured with them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from ...control.guard import DeviceGuard
from ...metering.condition import Condition
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from .gpu import ProcessGpu
from .language import Language
from .runner import KernelRunner
from .script_side import ScriptSide


class Opened(NamedTuple):
    """The processes of a device, and the language whose kernels run in them."""

    gpu: ProcessGpu
    language: Language

    def close(self) -> None:
        """End the compilers and the processes."""
        self.language.compiler.close()
        self.gpu.close()

    def runner(
        self,
        spec: Specification,
        space: SearchSpace,
        guard: DeviceGuard,
        condition: Condition | None = None,
        script: ScriptSide | None = None,
    ) -> KernelRunner:
        """The runner of a specification, which closes all this. Takes over the guard. Raises InputError."""
        with ExitStack() as undo:
            undo.callback(self.close)
            made = KernelRunner(self.gpu, spec, space, guard, self.language, condition, script)
            undo.pop_all()
        return made


def opened(gpu: ProcessGpu, make: Callable[[], Language]) -> Opened:
    """With the language that `make` gives; what that raises closes the device."""
    with ExitStack() as undo:
        undo.callback(gpu.close)
        language = make()
        undo.pop_all()
    return Opened(gpu, language)
