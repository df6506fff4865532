"""The command `wattridge` where there is no CUDA: kernels run on the stand-in's boards, all else is real."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "nvml"), str(_TESTS / "engine"), str(_TESTS.parent)]


def install(jobs: int = 1) -> None:
    """Put the stand-ins where the compiler and the CUDA backend would be."""
    from app.engine.metering import meter
    from app.engine.runner.cuda import language
    from app.engine.runner.cuda.toolchain import Toolchain

    toolchain = Toolchain((sys.executable, str(_TESTS / "engine" / "fake_cuda.py")), "fake 1")
    language.require_cuda = lambda gpu: None
    language.open_cuda = partial(language.open_cuda, backend="stand_in_cuda", toolchain=toolchain, jobs=jobs)
    meter.WARM_STEP_S = 0.02
    language.look_once = lambda *_: None  # 8 s of real time, and test_first_look has it


if __name__ == "__main__":
    from app.cli import main

    install()
    sys.exit(main(sys.argv[1:]))
