"""`wattridge examples`: the specifications and scripts that come with the program."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Final

from .sources import examples as by_name
from .terminal import print_json, print_table, show


def examples(arguments: Namespace) -> int:
    """Every example by its name, with the first sentence of its own description."""
    known = by_name()
    found = [
        {"name": name, "kind": _kind(known[name]), "about": _about(known[name]), "file": str(known[name])}
        for name in sorted(known, key=lambda name: (_KINDS.index(_kind(known[name])), name))
    ]
    if arguments.json:
        print_json(found)
        return 0
    print_table(
        [(match["name"], match["kind"], match["about"]) for match in found], ("example", "kind", "what it shows")
    )
    show("", "Try one: wattridge tune gemm --gpu simulated:a100. The files, to be copied and read:")
    show(*sorted({f"  {path.parent}" for path in known.values()}))
    return 0


_KINDS: Final = ("specification", "service", "Python")


def _kind(path: Path) -> str:
    if path.suffix == ".py":
        return "Python"
    return "service" if path.parent.name == "services" else "specification"


def _about(path: Path) -> str:
    """The first sentence of the file's comment or docstring."""
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(("#", '"""')):
            break
        words += line.strip('#" ').split()
    return " ".join(words).partition(". ")[0].rstrip(".")
