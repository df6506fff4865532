"""The frozen folder by component: bytes, and how many of them no run opened.

By hand: `strace -f -qq -e trace=openat -o OPENED FOLDER/wattridge COMMAND` for everything that the program can do, then
`python tests/benchmarks/never_loaded.py FOLDER OPENED... [--largest 40]`. Prints MB by component, and the largest files
that were not opened.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

COMPONENTS = {
    "CUDA": r"^_internal/(nvidia|cuda)/|(cuda|nvidia_cuda)[\w-]*\.dist-info",
    "Qt and PySide6": r"^_internal/(PySide6|shiboken6)",
    "SciPy": r"^_internal/scipy",
    "NumPy": r"^_internal/numpy",
    "OpenSSL, cryptography": r"libcrypto|libssl|^_internal/cryptography|_ssl|_hashlib",
    "OpenCL": r"^_internal/pyopencl",
    "Dask (pool)": r"^_internal/(dask|distributed|msgpack|yaml|tornado|psutil)",
    "aiohttp (service)": r"^_internal/(aiohttp|multidict|yarl|propcache|frozenlist)",
    "Wattridge": r"^_internal/wattridge",
    "program with all Python modules": r"^wattridge$",
    "Python": r"^_internal/(libpython|python3|base_library)",
    "fonts": r"^_internal/fonts",
    "system's graphics": r"^_internal/system",
    "system's libraries": r"^_internal/lib[^/]*$",
    "rest": r"",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("opened", type=Path, nargs="+", help="what strace wrote")
    parser.add_argument("--largest", type=int, default=20)
    arguments = parser.parse_args()
    opened = {
        os.path.realpath(path)
        for file in arguments.opened
        for path in re.findall(r'"(/[^"]+)"', file.read_text(encoding="utf-8", errors="replace"))
    }
    sizes, never = dict.fromkeys(COMPONENTS, 0), dict.fromkeys(COMPONENTS, 0)
    idle = []
    for path in arguments.folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        name, size = path.relative_to(arguments.folder).as_posix(), path.stat().st_size
        component = next(each for each, pattern in COMPONENTS.items() if re.search(pattern, name))
        sizes[component] += size
        if os.path.realpath(path) not in opened:
            never[component] += size
            idle.append((size, name))
    for component in sorted(sizes, key=lambda each: -sizes[each]):
        print(f"{component:34} {sizes[component] / 1e6:7.1f} {never[component] / 1e6:7.1f}")
    print(f"{'all':34} {sum(sizes.values()) / 1e6:7.1f} {sum(never.values()) / 1e6:7.1f}\n")
    for size, name in sorted(idle, reverse=True)[: arguments.largest]:
        print(f"{size / 1e6:7.2f} {name}")


if __name__ == "__main__":
    main()
