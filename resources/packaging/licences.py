"""The licences of everything in the frozen folder, in one text: run by `freeze.py` in the environment that it froze.

Of each Python package its own texts; of each library of the system what Debian says of it; LGPL-3 and what it asks for.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

_TEXT = re.compile(r"(^|/)(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*$|\.dist-info/licenses/", re.IGNORECASE)
_NOT_INSIDE = {"pip", "setuptools", "wheel", "build", "pyproject-hooks", "pyinstaller-hooks-contrib", "altgraph"}
_COMMON = Path("/usr/share/common-licenses")
_MOST = 200_000  # characters of one text
_HEAD = """\
Wattridge is under the Apache License, version 2.0. This folder also holds the works below, each under its own licence.

Qt, PySide6 and Shiboken are used under the GNU Lesser General Public License, version 3, as shared libraries in
_internal/PySide6 and _internal/shiboken6 that Wattridge loads when it starts. You may replace them by a modified
version with the same interface: put its files in their place. Nothing in Wattridge forbids that, nor reverse
engineering to debug such a modification. Their sources are published by The Qt Company with every release, as
qt-everywhere-src and pyside-setup-everywhere-src of the versions named below. The other libraries of the system under
the LGPL (GLib and more) are shared libraries in _internal too, as Debian builds them, with their sources in Debian's
archive. NVIDIA's compiler library (NVRTC) is redistributed under the CUDA Toolkit's End User License Agreement,
attachment A.
"""


def main() -> int:
    """Write the text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--system", type=Path, required=True, help="the folder whose libraries came from the system")
    arguments = parser.parse_args()
    parts = [_HEAD, *python(), *packages(), *system(arguments.system)]
    for name in ("LGPL-3", "GPL-3", "LGPL-2.1"):  # LGPL-3 consists of GPL-3 and more
        if (_COMMON / name).is_file():
            parts.append(_part(name, "", (_COMMON / name).read_text(encoding="utf-8")))
    arguments.out.write_text("\n".join(parts), encoding="utf-8")
    return 0


def python() -> Iterator[str]:
    """Of Python itself."""
    for folder in (Path(sysconfig.get_path("stdlib")), Path("/usr/share/doc/python3")):
        for name in ("LICENSE.txt", "LICENSE", "copyright"):
            if (folder / name).is_file():
                yield _part(f"Python {sys.version.split()[0]}", "PSF-2.0", (folder / name).read_text(encoding="utf-8"))
                return


def packages() -> Iterator[str]:
    """Of every Python package of this environment that is frozen."""
    for found in sorted(metadata.distributions(), key=lambda each: each.metadata["Name"].lower()):
        about = found.metadata
        if about["Name"].lower().replace("_", "-") in _NOT_INSIDE:
            continue
        licence = about.get("License-Expression") or ", ".join(
            each.rpartition(":: ")[2] for each in about.get_all("Classifier", []) if each.startswith("License")
        )
        texts = []
        for file in found.files or []:
            path = Path(str(file.locate()))
            if _TEXT.search(str(file)) and path.suffix not in (".py", ".pyc") and path.is_file():
                texts.append(path.read_text(encoding="utf-8", errors="replace")[:_MOST])
        yield _part(f"{about['Name']} {found.version}", licence or about.get("License", ""), *dict.fromkeys(texts))


def system(folder: Path) -> Iterator[str]:
    """Of the libraries that the machine's packages brought, by package."""
    names = {path.name for path in folder.rglob("lib*.so*") if path.is_file() and path.parent.name != "lib"}
    owners: dict[str, set[str]] = {}
    for name in sorted(names):
        asked = subprocess.run(["dpkg", "-S", f"*/{name}"], capture_output=True, text=True, check=False)
        for line in asked.stdout.splitlines():
            package, _, path = line.partition(": ")
            if path.endswith(f"/{name}") and path.startswith(("/lib/", "/usr/lib/")):
                owners.setdefault(package.partition(":")[0], set()).add(name)
    owners.setdefault("fonts-dejavu-core", set()).add("DejaVu fonts")
    for package, files in sorted(owners.items()):
        text = Path("/usr/share/doc") / package / "copyright"
        said = text.read_text(encoding="utf-8", errors="replace")[:_MOST] if text.is_file() else ""
        yield _part(f"{package} ({', '.join(sorted(files))})", "", said)


def _part(title: str, licence: str, *texts: str) -> str:
    line = "=" * 100
    return "\n".join([line, title, *([licence] if licence else []), line, *texts, ""])


if __name__ == "__main__":
    sys.exit(main())
