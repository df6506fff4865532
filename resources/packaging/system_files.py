"""What a package of the system brings beside the program: `python system_files.py ROOT VERSION [PICTURES]`.

Run where Wattridge is installed: the helper's files, the manual pages and the completions are made from the program.
Software centres load pictures from the network: PICTURES is the address where `resources/screenshots` is published.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import time
from pathlib import Path

import about_project
import completion
import manual
from command_line import commands
from wattridge.base.paths import resources
from wattridge.cli import command_parsers
from wattridge.engine.control.helper.__main__ import LAUNCHER
from wattridge.engine.control.installing import setup_program, tree

_UNIT = "usr/lib/systemd/system/wattridge-restore.service"
_COMPLETIONS = {
    "usr/share/bash-completion/completions/wattridge": completion.bash,
    "usr/share/zsh/vendor-completions/_wattridge": completion.zsh,
    "usr/share/fish/vendor_completions.d/wattridge.fish": completion.fish,
}
_PICTURES = {
    "watch-h200-dark": "Power, clocks and temperatures of an H200 at work",
    "tune-h200-light": "The front of a search, and the chosen configuration",
    "model-light": "The frequency model of a simulated A100",
}


def main() -> int:
    """Write all of it below the root that is named."""
    root, version = Path(sys.argv[1]), sys.argv[2]
    for name, content in tree("wattridge").items():
        _write(root / "usr/lib/wattridge" / name, content)
    (root / "usr/lib/wattridge" / LAUNCHER).chmod(0o755)
    _write(root / "usr/lib/wattridge-program/put-boards-back", setup_program("put back").encode())
    ours = resources()
    _copy(ours / "control" / "policy.conf", root / "etc/wattridge/policy.conf")
    action = "org.wattridge.control.policy"
    _copy(ours / "control" / action, root / "usr/share/polkit-1/actions" / action)
    _copy(ours / "control" / "wattridge-restore.service", root / _UNIT)
    for entry in (ours / "desktop").glob("*.desktop"):
        _copy(entry, root / "usr/share/applications" / entry.name)
    metainfo = "org.wattridge.Wattridge.metainfo.xml"
    about = (ours / "desktop" / metainfo).read_text(encoding="utf-8")
    shown = _addresses() + (_pictures(sys.argv[3]) if len(sys.argv) > 3 else "")
    about = about.replace("  <content_rating", f"{shown}  <content_rating")
    _write(root / "usr/share/metainfo" / metainfo, about.encode())
    _copy(ours / "desktop" / "wattridge.xml", root / "usr/share/mime/packages/wattridge.xml")
    icons = root / "usr/share/icons/hicolor"
    _copy(ours / "icons" / "wattridge.svg", icons / "scalable/apps/wattridge.svg")
    for icon in (ours / "icons").glob("wattridge-*.png"):
        size = icon.stem.rpartition("-")[2]
        _copy(icon, icons / f"{size}x{size}" / "apps" / "wattridge.png")
    described = commands(command_parsers)
    for path, make in _COMPLETIONS.items():
        _write(root / path, make(described).encode())
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    for name, page in manual.pages(described, version, date).items():
        path = root / f"usr/share/man/man{name[-1]}" / f"{name}.gz"
        _write(path, gzip.compress(page.encode(), 9, mtime=0))
    return 0


def _addresses() -> str:
    """Where the project is found, of pyproject.toml."""
    kinds = {"homepage": "Homepage", "bugtracker": "Issues", "help": "Documentation", "vcs-browser": "Repository"}
    return "".join(f'  <url type="{kind}">{about_project.URLS[name]}</url>\n' for kind, name in kinds.items())


def _pictures(address: str) -> str:
    """The pictures for a software centre, at that address."""
    lines = []
    for name, caption in _PICTURES.items():
        kind = "" if lines else ' type="default"'
        image = f"<image>{address.rstrip('/')}/{name}.png</image>"
        lines.append(f"    <screenshot{kind}><caption>{caption}</caption>{image}</screenshot>\n")
    return f"  <screenshots>\n{''.join(lines)}  </screenshots>\n"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)


if __name__ == "__main__":
    sys.exit(main())
