"""Makes a release: `python resources/packaging/release.py VERSION`. `--dry-run` does it in a copy, and changes nothing.

Without options it cuts the version in this checkout (change log, version, citation, metainfo), commits and tags it;
then the tag is to be pushed, and the workflow `release.yml` calls `--artefacts`. With `--dry-run` a copy of the last
commit is cut, every artefact made from it, and each one installed in a fresh system of each release of Debian that is
named, where the demonstration runs.

Artefacts: wheel, sdist, archive of the folder that runs anywhere, two Debian packages, AppImage (where `--runtime` is
what it begins with), a bill of materials (CycloneDX), SHA256SUMS.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Final

import about_project
import freeze

ROOT: Final = Path(__file__).resolve().parents[2]
OF_INDEX: Final = ("build==1.*", "twine>=6")
OF_BILL: Final = ("cyclonedx-bom==7.*",)
STEPS: Final = ("dists", "folder", "debian", "appimage", "recipes", "sbom", "sums")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_UNRELEASED: Final = "## [Unreleased]\n"
_CHANGED: Final = ("CHANGELOG.md", "CITATION.cff", "app/__init__.py", "resources/desktop")
_METAINFO: Final = Path("resources/desktop/org.wattridge.Wattridge.metainfo.xml")


def main() -> int:
    """Cut, or make artefacts, or both in a copy with a trial."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", metavar="VERSION")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="in a copy: cut, make, install in fresh systems, try")
    how.add_argument("--artefacts", action="store_true", help="only make the files, from this checkout as it is")
    parser.add_argument("--only", action="append", choices=STEPS, help="of the files; may be repeated")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the files go")
    parser.add_argument("--work", type=Path, default=Path("build"), help="for environments and what is made on the way")
    parser.add_argument("--runtime", type=Path, help="what an AppImage begins with; without it none is made")
    parser.add_argument("--compression", default="xz", help="of the Debian packages")
    parser.add_argument("--suites", default="bookworm", help="releases of Debian, by commas, for the trial (root)")
    arguments = parser.parse_args()
    if not _VERSION.fullmatch(arguments.version):
        raise SystemExit(f"{arguments.version}: no version, as 0.2.0 or 0.2.0rc1 is one")
    os.environ.setdefault("SOURCE_DATE_EPOCH", freeze.last_change())
    out, work = arguments.out.resolve(), arguments.work.resolve()
    out.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    if left := about_project.left_to_fill_in():
        print(f"placeholders, see RELEASING.md: {', '.join(left)}")
        if not arguments.dry_run and not arguments.only:
            raise SystemExit("nothing was changed")
    steps = arguments.only or list(STEPS)
    if arguments.dry_run:
        source = copy_of_last_commit(work / "source")
        cut(source, arguments.version, today())
        make(source, arguments.version, out, work, steps, arguments.runtime, arguments.compression)
        for suite in filter(None, arguments.suites.split(",")):
            try_all(out, work, suite)
    elif arguments.artefacts:
        make(ROOT, arguments.version, out, work, steps, arguments.runtime, arguments.compression)
    else:
        tag(arguments.version)
    return 0


# --- the version ------------------------------------------------------------------------------------------------------


def cut(root: Path, version: str, date: str) -> None:
    """Give what is unreleased this version and date, wherever a version stands. Raises SystemExit."""
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    before, mark, after = log.partition(_UNRELEASED)
    if not mark or not re.search(r"^- ", after.partition("\n## [")[0], re.MULTILINE):
        raise SystemExit("CHANGELOG.md: nothing is unreleased")
    if f"\n## [{version}]" in log:
        raise SystemExit(f"CHANGELOG.md: {version} was released before")
    (root / "CHANGELOG.md").write_text(f"{before}{_UNRELEASED}\n## [{version}] - {date}\n{after}", encoding="utf-8")
    replace(root / "app/__init__.py", r'^__version__ = ".*"$', f'__version__ = "{version}"')
    replace(root / "CITATION.cff", r"^version: .*$", f"version: {version}")
    replace(root / "CITATION.cff", r"^date-released: .*$", f'date-released: "{date}"')
    release = f'  <releases>\n    <release version="{version}" date="{date}"/>\n'
    replace(root / _METAINFO, r"^  <releases>\n", release)


def replace(path: Path, pattern: str, text: str) -> None:
    """Replace the one line of a file that a pattern matches. Raises SystemExit if there is none, or several."""
    content, count = re.subn(pattern, lambda _: text, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{path}: {count} lines are as {pattern}")
    path.write_text(content, encoding="utf-8")


def tag(version: str) -> None:
    """Cut the version in this checkout, commit and tag it. Raises SystemExit where the checkout is not clean."""
    if freeze.run("git", "-C", ROOT, "status", "--porcelain", capture=True).strip():
        raise SystemExit("the checkout has changes: commit them first")
    cut(ROOT, version, today())
    freeze.run("git", "-C", ROOT, "commit", "-q", "-m", f"Version {version}", "--", *_CHANGED)
    freeze.run("git", "-C", ROOT, "tag", "-a", f"v{version}", "-m", f"Wattridge {version}")
    print(f"tagged; to publish: git push origin HEAD v{version}")


def today() -> str:
    """The date, UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def copy_of_last_commit(where: Path) -> Path:
    """The files of the last commit in a folder of their own."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    archive = where.with_suffix(".tar")
    freeze.run("git", "-C", ROOT, "archive", "--output", archive, "HEAD")
    with tarfile.open(archive) as files:
        files.extractall(where, filter="data")
    archive.unlink()
    return where


# --- the files --------------------------------------------------------------------------------------------------------


def make(
    root: Path, version: str, out: Path, work: Path, steps: list[str], runtime: Path | None, compression: str
) -> None:
    """Make the artefacts of a checkout that has this version; prints how long each took."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "app/__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None or found[1] != version:
        raise SystemExit(f"{root}: this is version {found[1] if found else 'unknown'}, not {version}")
    packaging, frozen = root / "resources/packaging", work / "frozen"

    def folder() -> None:
        (wheel,) = out.glob("*.whl")
        freeze.run(sys.executable, packaging / "freeze.py", "--out", out, "--work", frozen, "--wheel", wheel)

    def debian() -> None:
        words = ("--out", out, "--work", frozen, "--built", "--compression", compression)
        freeze.run(sys.executable, packaging / "debian.py", *words)

    def appimage() -> None:
        if runtime is None:
            print("no AppImage: --runtime names none")
            return
        freeze.run(sys.executable, packaging / "appimage.py", "--out", out, "--work", frozen, "--runtime", runtime)

    def recipes() -> None:
        (sdist,) = out.glob("*.tar.gz")
        freeze.run(sys.executable, packaging / "recipes.py", sdist, work / "recipes")
        with tarfile.open(out / f"wattridge-{version}-recipes.tar", "w") as file:
            file.add(work / "recipes", "recipes")

    def dists() -> None:
        python = tools(work, OF_INDEX)
        freeze.run(python, "-m", "build", "-q", "--outdir", out, root)
        freeze.run(python, "-m", "twine", "check", "--strict", *out.glob("*.whl"), *out.glob("*.tar.gz"))

    makers: dict[str, Callable[[], None]] = {
        "dists": dists,
        "folder": folder,
        "debian": debian,
        "appimage": appimage,
        "recipes": recipes,
        "sbom": lambda: bill_of_materials(tools(work, OF_BILL), frozen / "venv/bin/python", root, out, version),
        "sums": lambda: sums(out),
    }
    for step in STEPS:
        if step in steps:
            begun = time.monotonic()
            makers[step]()
            print(f"{step}: {time.monotonic() - begun:.0f} s", flush=True)


def tools(work: Path, packages: tuple[str, ...]) -> Path:
    """The Python of an environment with what makes and checks files, these packages at least."""
    python = work / "tools/bin/python"
    if not python.exists():
        venv.create(work / "tools", with_pip=True)
    freeze.run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    return python


def bill_of_materials(tools: Path, frozen: Path, root: Path, out: Path, version: str) -> None:
    """Every package of Python's in the folder, with version and licence, as CycloneDX; not what only built it."""
    file = out / f"wattridge-{version}.cdx.json"
    words = ("environment", "--pyproject", root / "pyproject.toml", "--output-reproducible", "--of", "JSON")
    freeze.run(tools, "-m", "cyclonedx_py", *words, "--output-file", file, frozen)
    bill = json.loads(file.read_text(encoding="utf-8"))
    left = {each["bom-ref"] for each in bill["components"] if each["name"].lower().replace("-", "_") in freeze.TOOLS}
    bill["components"] = [each for each in bill["components"] if each["bom-ref"] not in left]
    bill["dependencies"] = [each for each in bill["dependencies"] if each["ref"] not in left]
    for each in bill["dependencies"]:
        if "dependsOn" in each:
            each["dependsOn"] = [ref for ref in each["dependsOn"] if ref not in left]
    bill["metadata"]["component"]["version"] = version
    file.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def sums(out: Path) -> None:
    """SHA256SUMS of the files, as sha256sum checks them."""
    lines = []
    for path in files(out):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    for path in files(out):
        print(f"{path.stat().st_size / 1e6:7.1f} MB  {path.name}")


def files(out: Path) -> list[Path]:
    """The artefacts that are there, by name."""
    return sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")


# --- the trial --------------------------------------------------------------------------------------------------------


def try_all(out: Path, work: Path, suite: str) -> None:
    """Install each artefact in a fresh system of a release of Debian and run the demonstration there."""
    if os.geteuid() != 0:
        raise SystemExit("a fresh system is a chroot, which root makes; nothing was tried")
    base = work / f"{suite}.tar"
    if not base.is_file():  # another distribution's may lie there
        freeze.run("mmdebstrap", "--variant=apt", "--include=ca-certificates", suite, base)
    failed = []
    for path in files(out):
        if path.suffix in (".json", ".tar") or path.name.startswith("wattridge-cuda"):
            continue
        begun = time.monotonic()
        done = in_fresh_system(work / f"try-{suite}", base, out, path.name)
        last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
        print(f"{suite}: {path.name}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - begun:.0f} s")
        if done.returncode:
            print(done.stdout)
            failed.append(path.name)
        elif last:
            print(f"    {last[0].strip()}", flush=True)
    if failed:
        raise SystemExit(f"{suite}: not installed, or the demonstration failed: {', '.join(failed)}")


def in_fresh_system(where: Path, base: Path, out: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Unpack the system, run `try_artefact.sh` in it, and remove it."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    freeze.run("tar", "--extract", "--file", base, "--directory", where)
    for each in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf"):
        if Path(each).exists():
            shutil.copyfile(each, where / each[1:])
    # of this machine, as files: the system's own are links to what it lacks
    freeze.run("cp", "--recursive", "--dereference", "--remove-destination", "/etc/ssl/certs", where / "etc/ssl")
    mounts = (("proc", "proc"), ("tmpfs", "dev/shm"))
    (where / "files").mkdir()
    for path in files(out):
        os.link(path, where / "files" / path.name)
    shutil.copyfile(Path(__file__).with_name("try_artefact.sh"), where / "files/try_artefact.sh")
    names = [each for each in os.environ if each.lower().endswith("_proxy") or each.startswith("PIP_")]
    mounted = []
    try:
        for kind, place in mounts:
            (where / place).mkdir(parents=True, exist_ok=True)
            freeze.run("mount", "-t", kind, kind, where / place)
            mounted.append(where / place)
        return subprocess.run(
            ["chroot", where, "sh", "/files/try_artefact.sh", f"/files/{name}"],
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                "LANG": "C.UTF-8",
                **{each: os.environ[each] for each in names},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(where, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
