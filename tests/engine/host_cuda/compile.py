"""Stands for nvcc: a kernel's source becomes a shared object of the host, which the stand-in's driver launches."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(')


def main(words: list[str]) -> int:
    """`-cubin [options] -o IMAGE SOURCE`; names are spelt `.text.NAME` too, as in a cubin, and `NAME.kd`, as of HIP."""
    image, source = words[words.index("-o") + 1], Path(words[-1])
    text = source.read_text(encoding="utf-8")
    names = KERNEL.findall(text)
    for included in re.findall(r'^#include "(.+)"$', text, re.MULTILINE):
        if Path(included).is_file():  # else it is found by the options, and holds no kernel
            names += KERNEL.findall(Path(included).read_text(encoding="utf-8"))
    ways = "".join(f"WAY_IN({name})\n" for name in names)
    listed = "".join(f'".text.{name}\\0{name}.kd\\0"' for name in names)
    whole = (
        f'#include "{HERE / "kernel.h"}"\n#line 1 "{source}"\n{text}\n{ways}extern "C" const char names[] = {listed};\n'
    )
    folders = [word for word in words if word.startswith("-I")]
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", *folders, "-x", "c++", "-o", image, "-"]
    return subprocess.run(command, input=whole, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
