"""Makes the Debian packages: `python resources/packaging/debian.py --out dist` (dpkg-deb is needed, root is not).

`wattridge` is the program, `wattridge-cuda` what compiles and launches kernels in CUDA: a third of all bytes.

It holds the folder that `freeze.py` makes, since one virtual environment cannot serve the Pythons of several releases.
The helper lies in /usr/lib/wattridge, where nothing may be added to its files, and runs on the system's Python; the
folder lies beside it. The same folder gives the same package (SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from email.utils import formatdate
from pathlib import Path

import about_project
import freeze

HERE = Path(__file__).resolve().parent
MAINTAINER = f"{os.environ.get('DEBFULLNAME', about_project.AUTHOR)} <{os.environ.get('DEBEMAIL', about_project.MAIL)}>"
ROOT = HERE.parents[1]
PROGRAM = Path("usr/lib/wattridge-program")
DEPENDS = (
    "libc6 (>= {glibc})",
    "python3 (>= 3.9)",  # of the helper
    *("libxcb1", "libwayland-client0", "libwayland-cursor0", "libwayland-egl1"),
    *("fontconfig-config", "fonts-dejavu-core"),
)
RECOMMENDS = ("pkexec", "polkitd", "libgl1", "libegl1", "xkb-data")
OF_CUDA = ("nvidia", "cuda", "cuda_*.dist-info", "nvidia_cuda_*.dist-info")  # below _internal
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
DESCRIPTION = """\
what a GPU draws, and where it does the most work per joule
 Wattridge shows what a GPU draws while it works, live, and searches kernel
 configurations, graphics clocks and power limits for the ones that do the
 most work per joule. Boards of NVIDIA and AMD are watched with nothing but
 their driver; simulated boards need no GPU.
 .
 Clocks and power limits are set by a small helper with the rights of root,
 only when the user asks for it, and put back when the program ends.
"""
DESCRIPTION_OF_CUDA = """\
kernels in CUDA for Wattridge
 Wattridge launches kernels by cuda-bindings and compiles them by NVRTC of
 CUDA 12.9, with nothing else than the driver of the board. Boards are
 watched, and programs measured, without this package.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Wattridge

Files: *
Copyright: 2026 The Wattridge developers
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

Files: {program}/_internal/*
Copyright: the authors named in /usr/share/doc/wattridge/LICENCES.txt.gz
License: others
 Every work in this folder is under its own licence. The texts, and what the
 LGPL of Qt asks for, are in /usr/share/doc/wattridge/LICENCES.txt.gz.
"""


def main() -> int:
    """Build; prints the package and its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the folder and the package go")
    parser.add_argument("--work", type=Path, default=Path("build"), help="for the environment and what it makes")
    parser.add_argument(
        "--built", action="store_true", help="the folder is in --out already, its environment in --work"
    )
    pictures = about_project.address("resources/screenshots", "raw")
    parser.add_argument(
        "--pictures", metavar="URL", default=pictures, help="of resources/screenshots, for software centres"
    )
    parser.add_argument(
        "--compression",
        default="xz",
        choices=("xz", "gzip", "none"),
        help="xz at level 2: level 6 saves a tenth and takes three times as long",
    )
    arguments = parser.parse_args()
    out, work = arguments.out.resolve(), arguments.work.resolve()
    os.environ.setdefault("SOURCE_DATE_EPOCH", freeze.last_change())
    if not arguments.built:
        freeze.run(sys.executable, HERE / "freeze.py", "--out", out, "--work", work, "--no-archive")
    root = work / "debian"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(out / "wattridge", root / PROGRAM, symlinks=True)
    documents = root / "usr/share/doc/wattridge"
    documents.mkdir(parents=True)
    write_gzip(documents / "LICENCES.txt.gz", (root / PROGRAM / "LICENCES.txt").read_bytes())
    (root / PROGRAM / "LICENCES.txt").unlink()
    version = freeze.run(root / PROGRAM / "wattridge", "--version", capture=True).split()[-1]
    freeze.run(
        work / "venv" / "bin" / "python", HERE / "system_files.py", root, version, *filter(None, [arguments.pictures])
    )
    link = root / "usr/bin/wattridge"
    link.parent.mkdir(parents=True)
    link.symlink_to("../lib/wattridge-program/wattridge")
    version += "-1"
    time = formatdate(int(os.environ["SOURCE_DATE_EPOCH"]))
    log = f"wattridge ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {time}\n"
    write_gzip(documents / "changelog.Debian.gz", log.encode())
    (documents / "copyright").write_text(COPYRIGHT.format(program=PROGRAM), encoding="utf-8")
    with_cuda = split(root, work / "debian-cuda")
    fields = {
        "Depends": ", ".join(DEPENDS).format(glibc=newest_glibc(root / PROGRAM)),
        "Recommends": ", ".join(RECOMMENDS),
        "Suggests": "wattridge-cuda",
        "Description": DESCRIPTION.rstrip(),
    }
    control = root / "DEBIAN"
    control.mkdir()
    (control / "conffiles").write_text("/etc/wattridge/policy.conf\n", encoding="utf-8")
    for name in SCRIPTS:
        shutil.copyfile(HERE / "debian" / name, control / name)
    build(root, "wattridge", version, fields, out, arguments.compression)
    if with_cuda is not None:
        needs = f"wattridge (= {version}), libc6 (>= {newest_glibc(with_cuda)})"
        fields = {"Depends": needs, "Description": DESCRIPTION_OF_CUDA.rstrip()}
        build(with_cuda, "wattridge-cuda", version, fields, out, arguments.compression)
    return 0


def split(root: Path, apart: Path) -> Path | None:
    """Move what kernels in CUDA need to a package of its own; its root, or None where the folder has none of it."""
    shutil.rmtree(apart, ignore_errors=True)
    internal = apart / PROGRAM / "_internal"
    moved = [path for name in OF_CUDA for path in sorted((root / PROGRAM / "_internal").glob(name))]
    for path in moved:
        internal.mkdir(parents=True, exist_ok=True)
        path.rename(internal / path.name)
    if not moved:
        return None
    documents = apart / "usr/share/doc/wattridge-cuda"
    documents.parent.mkdir(parents=True)
    documents.symlink_to("wattridge")
    return apart


def build(root: Path, name: str, version: str, more: dict[str, str], out: Path, compression: str) -> None:
    """Describe and pack one package; prints its sizes."""
    overrides = root / "usr/share/lintian/overrides" / name
    overrides.parent.mkdir(parents=True)
    shutil.copyfile(HERE / "debian" / f"lintian-overrides-{name}", overrides)
    control = root / "DEBIAN"
    control.mkdir(exist_ok=True)
    unpacked = freeze.size(root)
    fields = {
        "Package": name,
        "Version": version,
        "Architecture": "amd64",
        "Section": "science",
        "Priority": "optional",
        "Maintainer": MAINTAINER,
        "Installed-Size": str(unpacked // 1024),
        **({"Source": "wattridge"} if name != "wattridge" else {}),
        **more,
    }
    text = "".join(f"{field}: {value}\n" for field, value in fields.items())
    (control / "control").write_text(text, encoding="utf-8")
    sums = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts:
            sums.append(f"{digest(path)}  {path.relative_to(root).as_posix()}\n")
    (control / "md5sums").write_text("".join(sums), encoding="utf-8")
    package = out / f"{name}_{version}_amd64.deb"
    set_modes(root)
    freeze.run("dpkg-deb", "--root-owner-group", f"-Z{compression}", "-z2", "--build", root, package)
    print(f"{package}: {package.stat().st_size / 1e6:.0f} MB, {unpacked / 1e6:.0f} MB unpacked")


def newest_glibc(folder: Path) -> str:
    """The release of the C library that the folder's own programs and libraries need."""
    libraries = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    binaries = [str(path) for path in libraries if ".so" in path.name or os.access(path, os.X_OK)]
    text = subprocess.run(["readelf", "-V", *binaries], capture_output=True, text=True, check=False).stdout
    found = {tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([\d.]+)", text)}
    return ".".join(map(str, max(found)))


def set_modes(root: Path) -> None:
    """Folders and programs for all to read and run, other files to read; times of the last change."""
    time = int(os.environ["SOURCE_DATE_EPOCH"])
    programs = {root / PROGRAM / "wattridge", root / "usr/lib/wattridge/wattridge-control"}
    programs |= {root / "DEBIAN" / name for name in SCRIPTS}
    for path in [root, *root.rglob("*")]:
        if path.is_symlink():
            os.utime(path, (time, time), follow_symlinks=False)
            continue
        path.chmod(0o755 if path.is_dir() or path in programs else 0o644)
        os.utime(path, (time, time))


def write_gzip(path: Path, content: bytes) -> None:
    """Without name and time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def digest(path: Path) -> str:
    """As md5sum, which dpkg checks files by."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
