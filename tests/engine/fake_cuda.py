"""A device that is not there, and a compiler for it: what the runner process and its parent do is real, CUDA is not.

An 'image' is JSON of the source's #defines. `fault` says how a configuration misbehaves, `launch_ms` how long a launch
takes. As a program, this file stands for nvcc.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from elf_images import code, elf_image

from app.engine.runner.kernels.backend import Array, DeviceFault, Difference, KernelFacts, difference
from app.engine.specification.operator_shapes import parse_operator
from app.engine.workloads.kernel_arguments import Launch
from app.sensors.clock import Clock, HostClock
from app.sensors.limits import limits_of

MULTIPROCESSORS = 132
LAUNCHES = "FAKE_CUDA_LAUNCHES"  # names a file that gets a line for each launch, as a profiler sees them


def open_backend(device: str) -> FakeBackend:
    return FakeBackend(HostClock())


class FakeBackend:
    """Launches run one after the other; `busy_until_ns` is when the queue is empty, on the clock.

    `works(start_ns, end_ns, power_w)` is told of every stretch of them as it is queued.
    """

    def __init__(self, clock: Clock, works: Callable[[int, int, float], None] = lambda *_: None) -> None:
        self.clock = clock
        self.works = works
        self.busy_until_ns = clock.now_ns()
        self.lost = ""

    def queue(self, seconds: float, power_w: float) -> None:
        start_ns = max(self.busy_until_ns, self.clock.now_ns())
        self.busy_until_ns = start_ns + round(seconds * 1e9)
        self.works(start_ns, self.busy_until_ns, power_w)

    def describe(self) -> dict[str, Any]:
        limits = limits_of((9, 0), MULTIPROCESSORS).as_names()
        return {"name": "fake", "compute_capability": [9, 0], "limits": limits, "shared_memory_opt_in": 232448}

    def upload(self, array: Array) -> Array:
        return array.copy()

    def write(self, buffer: Array, array: Array) -> None:
        buffer[...] = array

    def read(self, buffer: Array, like: Array) -> Array:
        return buffer.copy()

    def copy(self, source: Array, target: Array, nbyte: int) -> None:
        target[...] = source

    def free(self, buffer: Array) -> None:
        pass

    def load(
        self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]
    ) -> FakeKernel:
        return FakeKernel(self, _defines(image), launch, arguments, constants)

    def product(self) -> FakeKernel | None:
        return None

    def vendor(self, facts: Mapping[str, Any], operands: Mapping[str, tuple[Array, Array]]) -> FakeVendor:
        operator = parse_operator(facts["operator"])
        if operator.shape[0] != 1:
            raise DeviceFault("a library was not found: pip install it")
        return FakeVendor(self, operands)

    def mark(self) -> FakeMark:
        return FakeMark(self, max(self.busy_until_ns, self.clock.now_ns()))

    def use_comparer(self, image: bytes) -> None:
        pass

    def difference(self, output: Array, reference: Array, like: Array, rtol: float, atol: float) -> Difference:
        return difference(output, reference, rtol, atol)

    def close(self) -> None:
        pass


class FakeMark:
    def __init__(self, backend: FakeBackend, at_ns: int) -> None:
        self._backend = backend
        self.at_ns = at_ns

    @property
    def passed(self) -> bool:
        if self._backend.lost:
            raise DeviceFault(self._backend.lost, fatal=True)
        return self._backend.clock.now_ns() >= self.at_ns

    def wait(self) -> None:
        while not self.passed:
            self._backend.clock.wait(min(1.0, (self.at_ns - self._backend.clock.now_ns()) / 1e9))

    def seconds_since(self, earlier: FakeMark) -> float:
        return (self.at_ns - earlier.at_ns) / 1e9


class FakeKernel:
    """y = factor * x + bias, over its first two arguments and the constant `bias` if there is one.

    It draws `draws_w`, else as much as it has blocks.
    """

    def __init__(
        self,
        backend: FakeBackend,
        defines: dict[str, str],
        launch: Launch,
        arguments: Sequence[Any],
        constants: Mapping[str, Array],
    ) -> None:
        self._backend, self._defines, self._arguments, self._constants = backend, defines, arguments, constants
        self._fault = defines.get("fault", "none") if not launch.name.endswith("_reference") else "none"
        if self._fault == "out_of_memory":
            raise DeviceFault("cuMemAlloc failed: out of memory")
        blocks = min(MULTIPROCESSORS, launch.grid[0] * launch.grid[1] * launch.grid[2])
        self._power_w = float(defines.get("draws_w", 100 + 400 * blocks / MULTIPROCESSORS))
        self._launch = launch
        self.facts = KernelFacts(32, 1024 + launch.shared_byte, 16 if self._fault == "spills" else 0, 8, 0.5)

    def launch(self, times: int) -> None:
        backend = self._backend
        launch_s = float(self._defines.get("launch_ms", "1")) * 1e-3
        if self._fault == "segfault":
            ctypes.string_at(0)
        if self._fault == "illegal_address":
            backend.lost = "cuEventSynchronize failed: an illegal memory access was encountered"
        if self._fault == "endless":
            launch_s = 1e6
        if log := os.environ.get(LAUNCHES):
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps({**self._launch.as_message(), "times": times, "defines": self._defines}) + "\n")
        if self._fault == "prints":
            os.write(1, b"a kernel prints this\n" * 2000)
        backend.queue(times * launch_s, self._power_w)
        y, x = self._arguments[:2]
        if self._fault == "overwrites":
            x[...] = -1
        y[...] = float(self._defines.get("factor", "2")) * x + self._constants.get("bias", np.zeros(1))
        if self._fault == "wrong":
            y[3] += 1

    def unload(self) -> None:
        pass


class FakeVendor:
    """A library's matrix product, 250 W for half a millisecond."""

    library = "fake library 1.0"
    facts = KernelFacts(0, 0, 0, 0, float("nan"))

    def __init__(self, backend: FakeBackend, operands: Mapping[str, tuple[Array, Array]]) -> None:
        self._backend, self._operands = backend, operands

    def launch(self, times: int) -> None:
        self._backend.queue(times * 0.5e-3, 250.0)

    def deliver(self) -> None:
        (c, _), (a, _), (b, _) = (self._operands[name] for name in ("c", "a", "b"))
        c[...] = a @ b

    def unload(self) -> None:
        pass


def compile_source(words: Sequence[str]) -> int:
    """nvcc's part: exit status 1 and a message for a source that says so."""
    image, source = Path(words[words.index("-o") + 1]), Path(words[-1])
    text = source.read_text()
    defines = defines_of(text)
    word, _, began = os.environ.get("FAKE_CUDA_HANGS", "").partition(" ")
    if word and word in text:
        Path(began).touch()
        time.sleep(600)
    print("x" * int(defines.get("says", "0")), file=sys.stderr)
    if defines.get("fault") == "broken":
        print(f'{source}(3): error: expected a ";"', file=sys.stderr)
        return 1
    if defines.get("fault") in ("warns", "wrong"):
        print(f"{source}(7): warning #177-D: variable was declared but never referenced", file=sys.stderr)
    time.sleep(float(defines.get("compile_s", "0")))
    image.write_bytes(image_of(defines))
    return 0


def defines_of(text: str) -> dict[str, str]:
    """What a source defines."""
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


def image_of(defines: Mapping[str, str]) -> bytes:
    """The image of a source."""
    body = code(*["LDG"] + ["FFMA"] * int(defines.get("multiplies", "1")) + ["BRA"])
    kept = b"\n" + json.dumps(defines).encode() + b"\n"
    return elf_image({".text.scale": body, ".defines": kept, ".text.scale_reference": b""})


def _defines(image: bytes) -> dict[str, str]:
    found = re.search(rb"\n(\{.*\})\n", image)
    assert found is not None, "an image of this compiler"
    return dict(json.loads(found[1]))


if __name__ == "__main__":
    sys.exit(compile_source(sys.argv[1:]))
