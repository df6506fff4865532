"""Where a CUDA compiler is, every example's kernel compiles for configurations drawn from all over its space."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fixtures.kernels_on_cpu import CUDA_EXAMPLES, defines

from app.engine.session.load import load_specification
from app.engine.space.build import build_space
from app.sensors.limits import limits_of

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc to compile with")


@pytest.mark.parametrize("path", CUDA_EXAMPLES, ids=lambda path: path.stem)
def test_configurations_of_an_example_compile_without_a_warning(path: Path, tmp_path: Path) -> None:
    spec = load_specification(path)
    assert spec.kernel is not None
    space = build_space(spec.parameters, spec.restrictions, spec.constants, limits_of((9, 0), 132))
    for row in np.random.default_rng(5).integers(space.size, size=2):
        lines = defines({**spec.constants, **space.configuration(int(row))})
        source = tmp_path / "kernel.cu"
        source.write_text("\n".join([*lines, *(f'#include "{file}"' for file in spec.kernel.sources)]))
        command = ["nvcc", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "kernel.cubin"), str(source)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (told.returncode, told.stdout + told.stderr) == (0, ""), lines
