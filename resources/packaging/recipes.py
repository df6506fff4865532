"""Recipes for conda-forge, the AUR and Flatpak, filled in from an sdist: `python recipes.py SDIST OUT`.

What they need is read from pyproject.toml. Flatpak's list of wheels with their sums is what pip resolves here (PYTHON
is the version that its runtime has), so it names the index that this pip asks.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import about_project

HERE: Final = Path(__file__).resolve().parent
PYTHON: Final = "3.12"  # of the freedesktop runtime 24.08
TO_BUILD: Final = ("hatchling>=1.25", "editables>=0.5")
_CONDA: Final = {"PySide6-Essentials": "pyside6", "prometheus-client": "prometheus_client"}
_ARCH: Final = {"PySide6-Essentials": "pyside6", "prometheus-client": "python-prometheus_client"}
_RECIPES: Final = {"conda": "recipe.yaml", "aur": "PKGBUILD", "flatpak": "org.wattridge.Wattridge.yml"}


def main() -> int:
    """Write all of them."""
    sdist, out = Path(sys.argv[1]), Path(sys.argv[2])
    version = sdist.name.removeprefix("wattridge-").removesuffix(".tar.gz")
    written = write(version, hashlib.sha256(sdist.read_bytes()).hexdigest(), out)
    modules = out / "flatpak" / "python-packages.json"
    modules.write_text(json.dumps(python_packages(), indent=1) + "\n", encoding="utf-8")
    print(*written, modules, sep="\n")
    return 0


def write(version: str, sha256: str, out: Path) -> list[Path]:
    """Fill the recipes in; their paths."""
    needs = [re.split(r"(?=[<>=!~])", each, maxsplit=1) for each in about_project.DEPENDENCIES]
    values = {
        "VERSION": version,
        "SHA256": sha256,
        "AUTHOR": about_project.AUTHOR,
        "MAIL": about_project.MAIL,
        "SUMMARY": about_project.SUMMARY,
        "OWNER": about_project.URLS["Repository"].split("/")[-2],
        "CONDA": "\n".join(f"    - {_CONDA.get(name, name)} {''.join(limit)}" for name, *limit in needs),
        "ARCH": "\n".join(f"  {_ARCH.get(name, f'python-{name}')}" for name, *_ in needs),
        **{name.upper(): address for name, address in about_project.URLS.items()},
    }
    written = []
    for folder, name in _RECIPES.items():
        text = (HERE / "recipes" / name).read_text(encoding="utf-8")
        path = out / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"@([A-Z0-9]+)@", lambda found: values[found[1]], text), encoding="utf-8")
        written.append(path)
    return written


def python_packages() -> dict[str, object]:
    """Flatpak's module of the wheels that the program needs, and of what builds it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = [
            "--dry-run",
            "--ignore-installed",
            "--only-binary",
            ":all:",
            "--target",
            folder,
            "--report",
            str(report),
        ]
        words += [
            "--python-version",
            PYTHON,
            "--platform",
            "manylinux_2_28_x86_64",
            "--platform",
            "manylinux_2_34_x86_64",
        ]
        words += ["--platform", "manylinux2014_x86_64", "-q", *about_project.DEPENDENCIES, *TO_BUILD]
        subprocess.run([sys.executable, "-m", "pip", "install", *words], check=True)
        found = [each["download_info"] for each in json.loads(report.read_text(encoding="utf-8"))["install"]]
    sources = [
        {"type": "file", "url": each["url"], "sha256": each["archive_info"]["hashes"]["sha256"]} for each in found
    ]
    command = 'pip3 install --prefix=/app --no-index --find-links="file://${PWD}" --no-deps *.whl'
    return {
        "name": "python-packages",
        "buildsystem": "simple",
        "build-commands": [command],
        "sources": sorted(sources, key=lambda each: each["url"].rpartition("/")[2]),
    }


if __name__ == "__main__":
    sys.exit(main())
