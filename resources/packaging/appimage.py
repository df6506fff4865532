"""Makes the AppImage, one file that runs anywhere: `python resources/packaging/appimage.py --out dist --runtime FILE`.

It holds the folder that `freeze.py` makes. FILE is what an AppImage begins with: `runtime-x86_64` of the AppImage
project's type2-runtime, as it is published there or compiled from its source; no package index has it. `mksquashfs` is
in Debian's squashfs-tools. The same folder and runtime give the same file (SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import freeze

ROOT = Path(__file__).resolve().parents[2]
MAGIC = b"AI\x02"  # at byte 8: an AppImage of type 2
ENTRY, ICON = "wattridge.desktop", "wattridge.svg"


def main() -> int:
    """Build; prints the file and its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the folder is and the file goes")
    parser.add_argument("--work", type=Path, default=Path("build"), help="for what is made on the way")
    parser.add_argument("--runtime", type=Path, required=True, help="runtime-x86_64 of AppImage's type2-runtime")
    parser.add_argument("--mksquashfs", default="mksquashfs", help="of squashfs-tools")
    arguments = parser.parse_args()
    runtime = arguments.runtime.read_bytes()
    if runtime[8:11] != MAGIC:
        raise SystemExit(f"{arguments.runtime}: no runtime of an AppImage of type 2")
    os.environ.setdefault("SOURCE_DATE_EPOCH", freeze.last_change())
    folder = arguments.out.resolve() / "wattridge"
    inside = application(folder, arguments.work.resolve() / "AppDir")
    version = freeze.run(folder / "wattridge", "--version", capture=True).split()[-1]
    file, packed = arguments.out.resolve() / f"wattridge-{version}-x86_64.AppImage", inside.with_suffix(".squashfs")
    packed.unlink(missing_ok=True)
    freeze.run(
        arguments.mksquashfs,
        inside,
        packed,
        "-all-root",
        "-noappend",
        "-comp",
        "zstd",
        "-Xcompression-level",
        "9",
        "-quiet",
        "-no-progress",
    )
    file.write_bytes(runtime)
    with file.open("ab") as whole, packed.open("rb") as part:
        shutil.copyfileobj(part, whole)
    file.chmod(0o755)
    packed.unlink()
    print(f"{file}: {file.stat().st_size / 1e6:.0f} MB")
    return 0


def application(folder: Path, inside: Path) -> Path:
    """The folder with what an AppImage has beside a program: AppRun, the entry for a menu, the icon."""
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(folder, inside / "program", symlinks=True, copy_function=os.link)
    (inside / "AppRun").symlink_to("program/wattridge")
    shutil.copyfile(ROOT / "resources" / "desktop" / ENTRY, inside / ENTRY)
    shutil.copyfile(ROOT / "resources" / "icons" / ICON, inside / ICON)
    (inside / ".DirIcon").symlink_to(ICON)
    return inside


if __name__ == "__main__":
    sys.exit(main())
