"""What an assistant may not run: everything but kernels of files in the folders that were named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.base.errors import InputError, PermissionRefused, WattridgeError
from app.base.paths import resources
from app.commands.assistant.allowed import Folders, check_board, load_allowed

KERNEL = 'extern "C" __global__ void add(float *c, const float *a, const float *b) { c[0] = a[0] + b[0]; }\n'
SPECIFICATION = """
{before}
[kernel]
name = "add"
source = "{source}"
problem_size = [1024]
profile = "vector_add"
arguments = [
    {{ name = "c", type = "float32", shape = [1024], output = true }},
    {{ name = "a", type = "float32", shape = [1024], fill = "random" }},
    {{ name = "b", type = "float32", shape = [1024], fill = "{fill}" }},
]
{kernel}
[parameters]
block_size_x = [32, 64]
{after}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "allowed"
    made.mkdir()
    (made / "add.cu").write_text(KERNEL)
    return made


def _write(folder: Path, name: str = "add.toml", **parts: str) -> str:
    filled = {"before": "", "source": "add.cu", "fill": "random", "kernel": "", "after": "", **parts}
    (folder / name).write_text(SPECIFICATION.format(**filled))
    return name


def _refused(folder: Path, name: str, *words: str) -> None:
    with pytest.raises((PermissionRefused, InputError)) as caught:
        load_allowed(name, Folders([folder]))
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_kernel_of_the_folder_may_run(folder: Path) -> None:
    (folder / "common").mkdir()
    (folder / "common" / "sizes.h").write_text("#define SIZE 32\n")
    (folder / "add.cu").write_text('#include <cuda_fp16.h>\n#  include "common/sizes.h"  // sizes\n' + KERNEL)
    _write(folder, kernel='compiler_options = ["-O3", "--use_fast_math", "-DFAST=1", "-std=c++17", "-lineinfo"]')
    found = load_allowed("add.toml", Folders([folder]))
    assert found.kernel is not None
    assert load_allowed(str(folder / "add.toml"), Folders([folder])).name == found.name


def test_an_operator_and_the_examples_that_come_with_the_program_may_run(folder: Path) -> None:
    assert load_allowed("mm:1,64,64,64", Folders([folder])).kernel is not None
    examples = Folders([resources() / "examples"])
    assert load_allowed("gemm.toml", examples).kernel is not None
    refused = {}
    for path in sorted((resources() / "examples").glob("*.toml")):
        try:
            load_allowed(path.name, examples)
        except WattridgeError as error:
            refused[path.stem] = str(error)
    assert set(refused) == {"matrix_product_c", "polynomial_generated", "smooth_fortran"}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"kernel": 'generator = "python3 make.py"'}, "generator"),
        ({"kernel": 'verify = { reference = "a + b", command = "./check {c}" }'}, "verify.command"),
        ({"kernel": 'language = "C"', "source": "add.c"}, "function of the host"),
        ({"kernel": 'language = "C"\ncompiler = "gcc"', "source": "add.c"}, "function of the host"),
        ({"kernel": 'language = "Fortran"', "source": "add.f90"}, "function of the host"),
        ({"after": '[metering]\nmeters = ["command:/bin/sh"]'}, "power meters"),
        ({"kernel": 'compiler_options = ["-ccbin=/tmp/evil"]'}, "-ccbin"),
        ({"kernel": 'compiler_options = ["-Xcompiler", "-fplugin=evil.so"]'}, "-Xcompiler"),
        ({"kernel": 'compiler_options = ["-I/etc"]'}, "-I/etc"),
        ({"kernel": 'compiler_options = ["-include", "/etc/passwd"]'}, "-include"),
        ({"kernel": 'compiler_options = ["@/etc/passwd"]'}, "@/etc"),
        ({"kernel": 'compiler_options = ["-DX=1\\n#include </etc/passwd>"]'}, "-DX"),
        ({"kernel": 'include = ["/etc"]'}, "not in the folders"),
        ({"kernel": 'verify = { reference = "../outside.npy" }'}, "not in the folders"),
        ({"kernel": 'verify = { reference = "../outside.cu" }'}, "not in the folders"),
        ({"fill": "/etc/outside.npy"}, "not in the folders"),
        ({"source": "../outside.cu"}, "not in the folders"),
        ({"source": "/etc/passwd"}, "not in the folders"),
        ({"source": "link.cu"}, "not in the folders"),
        ({"kernel": 'template = "float>();\\n#include </etc/passwd>\\n//"'}, "line of the kernel's source"),
        ({"after": 'mode = ["a\\n#include </etc/passwd>"]'}, "line of the kernel's source"),
        ({"after": '[constants]\nx = "1 \\n#include </etc/passwd>"'}, "line of the kernel's source"),
    ],
)
def test_what_could_run_a_program_or_read_another_file_is_refused(
    folder: Path, parts: dict[str, str], said: str
) -> None:
    outside = folder.parent
    for name in ("outside.cu", "outside.npy"):
        (outside / name).write_text(KERNEL)
    (folder / "link.cu").symlink_to(outside / "outside.cu")
    for name in ("add.c", "add.f90"):
        (folder / name).write_text("")
    _refused(folder, _write(folder, **parts), said)


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '  #  include "../outside.h"',
        '#include "below/../../outside.h"',
        '#inc\\\nlude "/etc/passwd"',
        '#/**/include/**/"/etc/passwd"',
        '/**/ #include "/etc/passwd"',
        '%:include "/etc/passwd"',
        '??=include "/etc/passwd"',
        '#inc??/\nlude "/etc/passwd"',
        '#define WHERE "/etc/passwd"\n#include WHERE',
        '#include /*\n*/ "/etc/passwd"',
        '#embed "/etc/passwd"',
        '#import "/etc/passwd"',
        '#include_next "/etc/passwd"',
        'const char *s = "/*"; //\n/**/ #include "/etc/passwd"\n//*/',
        '#include "linked.h"',
        '#include "indirect.h"',
        '#include "add.cu"\r#include "/etc/passwd"',
        '#inc\\ \nlude "/etc/passwd"',
        '#inc\\\t \nlude "/etc/passwd"',
        '#inc\\\f\nlude "/etc/passwd"',
        '#inc??/ \nlude "/etc/passwd"',
        '#\0include "/etc/passwd"',
        '#include "indirect.h" // \\ \n#include "/etc/passwd"',
        '#if __has_include("/etc/passwd")\n#endif',
        '#if __has_\\ \ninclude("/etc/passwd")\n#endif',
        '#if __has_embed("/etc/passwd")\n#endif',
        '#if __has_include_next("/etc/passwd")\n#endif',
        '#if _CCCL_HAS_INCLUDE("/etc/passwd")\n#endif',
        '#define JOIN(a, b) a##b\n#if JOIN(__has_inc, lude)("/etc/passwd")\n#endif',
        '#define JOIN(a, b) a##b\n#if JOIN(_, _has_include)("/etc/passwd")\n#endif',
        '#include "of the server.txt"',
        '#include "pipe.h"',
    ],
)
def test_includes_outside_the_folders_are_refused_however_they_are_written(
    monkeypatch: pytest.MonkeyPatch, folder: Path, line: str
) -> None:
    (folder.parent / "outside.h").write_text("")
    (folder.parent / "of the server.txt").write_text("what lies where the server was started")
    monkeypatch.chdir(folder.parent)
    os.mkfifo(folder / "pipe.h")
    (folder / "below").mkdir()
    (folder / "linked.h").symlink_to(folder.parent / "outside.h")
    (folder / "indirect.h").write_text('#include "/etc/passwd"\n')
    (folder / "add.cu").write_text(f"{line}\n{KERNEL}")
    _refused(folder, _write(folder), "may not run this")


def test_comments_that_a_pattern_could_split_in_many_ways_take_no_time(folder: Path) -> None:
    for line in ("#" + "/**/" * 200_000 + "x", '#include "add.cu" //' * 50_000):
        (folder / "add.cu").write_text(f"{line}\n{KERNEL}")
        _refused(folder, _write(folder), "may not run this")


@pytest.mark.parametrize(
    "parts",
    [
        {"after": "[constants]\nasks = '__has_include'"},
        {"after": "mode = ['__has_include(\"/etc/passwd\")']"},
        {"kernel": 'compiler_options = ["-Dasks=__has_include"]'},
    ],
)
def test_no_value_may_ask_for_a_file(folder: Path, parts: dict[str, str]) -> None:
    _refused(folder, _write(folder, **parts), "line of the kernel's source")


@pytest.mark.parametrize(
    "line",
    ['asm(".incbin "/etc/passwd"");', '__asm__ volatile("");', "#define JOIN(x, y) x##y\n#define WORD JOIN(__as, m__)"],
)
def test_only_the_assembler_of_nvidia_which_reads_no_files_is_used(folder: Path, line: str) -> None:
    (folder / "add.cu").write_text(f"{line}\n{KERNEL}")
    (folder / "add.cl").write_text(f"{line}\n__kernel void add(__global float *c) {{}}\n")
    name = _write(folder)
    assert load_allowed(name, Folders([folder])).kernel is not None
    with pytest.raises(PermissionRefused, match="assembler"):
        load_allowed(name, Folders([folder]), amd=True)
    _refused(folder, _write(folder, kernel='language = "OpenCL"', source="add.cl"), "assembler")


def test_an_include_is_looked_for_where_the_compiler_would(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "second.cu").write_text("")
    (folder / "other" / "hidden.h").write_text('#include "/etc/passwd"\n')
    (folder / "add.cu").write_text(f'#include "hidden.h"\n{KERNEL}')
    _write(folder)
    text = (folder / "add.toml").read_text().replace('source = "add.cu"', 'source = ["add.cu", "other/second.cu"]')
    (folder / "add.toml").write_text(text)
    _refused(folder, "add.toml", "may not run this", "hidden.h")


def test_a_program_a_service_and_a_bare_space_are_refused(folder: Path) -> None:
    (folder / "command.toml").write_text('[command]\nrun = "/bin/sh -c id"\n[parameters]\nn = [1, 2]\n')
    _refused(folder, "command.toml", "runs a program")
    (folder / "space.toml").write_text("[parameters]\nn = [1, 2]\n")
    _refused(folder, "space.toml", "no [kernel]")
    (folder / "service.toml").write_text('[service]\nrun = "/bin/sh"\n[parameters]\nn = [1, 2]\n')
    with pytest.raises(WattridgeError):
        load_allowed("service.toml", Folders([folder]))
    t1 = {
        "General": {"FormatVersion": 1},
        "ConfigurationSpace": {"TuningParameters": [{"Name": "n", "Type": "int", "Values": "[1, 2]"}]},
        "KernelSpecification": {"Language": "C", "KernelName": "add", "KernelFile": "add.c"},
    }
    (folder / "t1.json").write_text(json.dumps(t1))
    with pytest.raises(WattridgeError):
        load_allowed("t1.json", Folders([folder]))


@pytest.mark.parametrize(
    "name",
    ["../outside.toml", "/etc/passwd", "link.toml", "", ".", "nothing.toml", "add.py", "a\0b", "~/x.toml", "x" * 5000],
)
def test_files_outside_the_folders_are_not_there(folder: Path, name: str) -> None:
    (folder.parent / "outside.toml").write_text("")
    (folder / "add.py").write_text("import os")
    (folder / "link.toml").symlink_to(folder.parent / "outside.toml")
    _refused(folder, name)


def test_a_huge_specification_is_not_read(folder: Path) -> None:
    (folder / "huge.toml").write_bytes(b"#" * (2 << 20))
    _refused(folder, "huge.toml", "larger than")


def test_only_what_may_be_a_specification_is_listed(folder: Path) -> None:
    for name in ("b.toml", "a.json", "c.py", ".hidden/d.toml", "below/e.toml"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    found = [str(path.relative_to(os.path.realpath(folder))) for path in Folders([folder]).specifications(10)]
    assert found == ["a.json", "b.toml", os.path.join("below", "e.toml")]
    assert len(list(Folders([folder]).specifications(2))) == 2


@pytest.mark.parametrize("selector", ["0", "GPU-8f6c21a3", "amd:1", "simulated:a100", "recorded:h200-sgemm"])
def test_boards_that_are_listed_may_be_used(selector: str) -> None:
    assert check_board(selector) == selector


@pytest.mark.parametrize(
    "selector",
    ["host", "opencl", "opencl:0", "ssh://host/0", "simulated:/tmp/x.toml", "recorded:/etc/passwd", "recorded:../x",
     "simulated:a.toml", "--gpu", "0 1", "", "0\n", "simulated:a100\n"],
)  # fmt: skip
def test_other_devices_machines_and_files_are_not(selector: str) -> None:
    with pytest.raises(InputError):
        check_board(selector)
