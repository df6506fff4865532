"""A board on which kernels are compiled and measured: CUDA is not there, all else is.

The compiler is a function of the test, so that it knows what is made, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from cuda_bench import SPECIFICATION
from fake_cuda import defines_of, image_of

from app.engine.control.guard import DeviceGuard
from app.engine.runner.cuda import open as cuda
from app.engine.runner.kernels.compiler import Compiled, Compiler, NotCompiled
from app.engine.session.load import load_specification
from app.engine.session.pool.worker import BoardWork
from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace
from app.engine.specification.model import Specification
from app.sensors.gpu import Gpu
from app.sensors.limits import limits_of

COMPILER = "fake 1 for (9, 0)"


class TestMaker:
    """Implements `ImageMaker` in this process. It remembers of which configurations it made an image."""

    __test__ = False

    def __init__(self, identity: str = COMPILER, before: Callable[[dict[str, str]], None] = lambda _: None) -> None:
        """`before` is called with the defines of each kernel before it is compiled: it may wait."""
        self.identity = identity
        self.made: list[dict[str, str]] = []
        self._before = before

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        defines = defines_of(text)
        if "factor" in defines:  # else it is one of our own
            self._before(defines)
            self.made.append(defines)
        if defines.get("fault") == "broken":
            raise NotCompiled('error: expected a ";"')
        return Compiled(image_of(defines), "")

    def close(self) -> None:
        pass


class Bench:
    """A specification of so many kernels, and a board's side."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, board: Gpu, parameters: str, own: TestMaker) -> None:
        (folder / "scale.cu").write_text("// what the fake compiler reads are the defines\n")
        path = folder / "scale.toml"
        path.write_text(SPECIFICATION.format(parameters=parameters, reference="factor * x", kernel=""))
        self.spec: Specification = load_specification(path)
        self.space: SearchSpace = build_space(
            self.spec.parameters, self.spec.restrictions, self.spec.constants, limits_of((9, 0), 132)
        )
        patch.setattr(cuda, "require_cuda", lambda *_: None)
        opened = partial(cuda.open_cuda_runner, backend="fake_cuda")
        patch.setattr(cuda, "open_cuda_runner", opened)
        patch.setattr(cuda, "cuda_compiler", lambda *_a, **_k: Compiler(own, folder=folder / "own", jobs=1))
        self.board = BoardWork(board, DeviceGuard(board), host="bench", key="board")
