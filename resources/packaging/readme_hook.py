"""For hatchling: the long description is README.md, whose links and pictures work on the package index too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # for front ends that leave the path of the back end out

from about_project import ROOT, with_addresses


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(text)}
