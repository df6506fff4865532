"""A kernel as the simulated boards run it: its profile's formulas turn a configuration into work and traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.errors import InputError
from ...sensors.gpu import Load
from ...sensors.limits import DeviceLimits
from ...sensors.simulated.kernels.residency import residencies
from ...sensors.simulated.profiles import PROFILES, LaunchRefused, load_of
from ..results.measurement import Configuration, Value
from ..results.process import DATA, PAUSE, SAME_DATA, sms_asked
from ..specification.model import OF_THE_HOST, Specification
from .machine_code import LaunchShape

_WORD_BYTE = 4.0  # of a register


def _real(spec: Specification) -> str:
    """What runs a specification in earnest."""
    language = spec.kernel.language if spec.kernel is not None else "CUDA"
    if language in OF_THE_HOST:
        return "--gpu host"
    return "--gpu opencl" if language == "OpenCL" else "a real GPU"


class ProfiledKernel:
    """The kernel of a specification on a simulated board."""

    def __init__(self, profile: str, constants: Mapping[str, Value], limits: DeviceLimits) -> None:
        self._profile = profile
        self._constants = dict(constants)
        self._limits = limits

    @classmethod
    def of(cls, spec: Specification, limits: DeviceLimits) -> ProfiledKernel:
        """Raises InputError if the specification does not say how a simulated board costs its kernel."""
        if spec.kernel is None or not spec.kernel.profile:
            raise InputError(
                "a simulated GPU cannot run this: there is no [kernel] with a profile",
                str(spec.path),
                f'add profile = "gemm" (or {", ".join(PROFILES[1:])}) under [kernel], or choose {_real(spec)}',
            )
        for name, why in ((DATA, SAME_DATA), (PAUSE, "a simulated board launches without a pause")):
            if name in spec.parameters:
                raise InputError(why, f"{spec.path}: {name}", "leave it out, or choose a real GPU")
        return cls(spec.kernel.profile, spec.constants, limits)

    def prepare(self, configuration: Configuration) -> Load:
        """The load of one launch on the board. Raises LaunchRefused if a real board would refuse it."""
        load, every = load_of(self._profile, configuration, self._constants, self._limits), self._limits.multiprocessors
        asked = sms_asked(configuration, every)
        return replace(load, sm_share=asked / every) if asked else load

    def features(self, configuration: Configuration) -> dict[str, float]:
        """What a compiler would report of the kernel, by names of FEATURES; empty if it refuses to launch."""
        with residencies() as seats:
            try:
                self.prepare(configuration)
            except (LaunchRefused, InputError):
                return {}
        if not seats:
            return {}
        seat = seats[-1]
        return LaunchShape(
            grid_blocks=seat.blocks,
            block_threads=seat.threads,
            blocks_per_multiprocessor=seat.fits,
            multiprocessors=self._limits.multiprocessors,
            max_threads_per_multiprocessor=self._limits.max_threads_per_multiprocessor,
            registers_per_thread=float(seat.registers),
            shared_memory_byte=float(seat.shared_byte),
            local_memory_byte=_WORD_BYTE * seat.spilled,
        ).features()
