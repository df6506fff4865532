"""A compiler that takes long is not waited for once the session is stopped, whatever is compiled and whoever waits."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import fake_ncu
import numpy as np
import pytest
from fixtures.cuda_bench import SPECIFICATION, Bench, SteadySensors
from fixtures.virtual_cuda import VirtualBoard

from app.base.errors import WattridgeError
from app.base.processes import stop_on_interrupt
from app.engine.metering import meter as metering
from app.engine.runner.cuda.square_wave import WaveGpu
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.kernels import reference
from app.engine.runner.profiling.ncu import NcuProfiler
from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.sensors.limits import limits_of

HERE = Path(__file__).parents[1]
COMPARER, FIXED_LOAD, KERNEL = "difference_", "square_wave", "launch_ms"


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`hanging(word)`: sources with that word compile for ten minutes; the file that is there once one does."""
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)
    began = tmp_path / "compiles"

    def hang(word: str) -> Path:
        monkeypatch.setenv("FAKE_CUDA_HANGS", f"{word} {began}")
        return began

    return hang


def ended_by(
    stop: Callable[[], None], began: Path, waits: Callable[[], object], ready: Callable[[], bool] = lambda: True
) -> object:
    """What comes of a wait that is stopped while a compiler hangs. It ends long before the compiler would."""
    found: list[object] = []

    def work() -> None:
        try:
            found.append(waits())
        except WattridgeError as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    end_s = time.monotonic() + 60
    while not (began.exists() and ready()) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert began.exists()
    assert ready()
    time.sleep(1.0)  # for it to be waited for; the outcome is the same without
    stop()
    thread.join(60)
    assert not thread.is_alive()
    return found[0]


@pytest.mark.parametrize("word", [COMPARER, FIXED_LOAD])
def test_what_is_compiled_beside_the_kernels_is_not_waited_for_after_a_stop(
    bench: type[Bench],
    virtual_board: VirtualBoard,
    hanging: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    word: str,
) -> None:
    monkeypatch.setattr(reference, "FIRST", (0,))
    began, stop = hanging(word), threading.Event()
    one = bench("launch_ms = [1, 2]", sensors=virtual_board)

    def others_are_compiled() -> bool:
        return one.runner.compiled == 2  # the kernel of the row, and the comparer or the fixed load

    assert ended_by(stop.set, began, lambda: list(one.runner.measure([0], stop)), others_are_compiled) == []
    monkeypatch.delenv("FAKE_CUDA_HANGS")


def test_features_of_rows_that_still_compile_are_unknown_after_a_stop(
    bench: type[Bench], hanging: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, stop = hanging(KERNEL), threading.Event()
    one = bench("launch_ms = [1, 2]")
    found = ended_by(stop.set, began, lambda: one.runner.features([0], stop))
    assert isinstance(found, np.ndarray)
    assert np.isnan(found).all()
    monkeypatch.delenv("FAKE_CUDA_HANGS")
    assert not np.isnan(one.runner.features([1], threading.Event())).all()


def test_images_for_the_profiler_are_not_waited_for_after_a_stop(
    tmp_path: Path, hanging: Callable[[str], Path]
) -> None:
    began, stop = hanging(KERNEL), threading.Event()
    (tmp_path / "scale.cu").write_text("// what the fake compiler reads are the defines\n")
    path = tmp_path / "scale.toml"
    path.write_text(SPECIFICATION.format(parameters="launch_ms = [1, 2]", reference="factor * x", kernel=""))
    spec = load_specification(path)
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
    toolchain = Toolchain((sys.executable, str(HERE / "fake_cuda.py")), "fake 1")
    profiler = NcuProfiler(
        spec, SteadySensors(), space, ncu=fake_ncu.install(tmp_path), backend="fake_cuda", toolchain=toolchain
    )
    assert ended_by(stop.set, began, lambda: list(profiler.profile(range(2), stop))) == []


def test_the_load_of_a_characterisation_is_not_waited_for_after_a_signal(hanging: Callable[[str], Path]) -> None:
    began = hanging(FIXED_LOAD)
    toolchain = Toolchain((sys.executable, str(HERE / "fake_cuda.py")), "fake 1")
    with stop_on_interrupt() as stop:
        found = ended_by(
            stop.set, began, lambda: WaveGpu(SteadySensors(), backend="fake_cuda", toolchain=toolchain).close()
        )
    assert isinstance(found, WattridgeError)
    assert "the session ended" in str(found)
