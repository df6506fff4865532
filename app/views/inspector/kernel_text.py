"""`KernelText`: the source that a session's specification names, read off Qt's thread; free of Qt."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.measurement import Configuration

if TYPE_CHECKING:
    from ...engine.specification.model import Specification
    from ...engine.workloads.command import Command

MAX_SOURCE_BYTES = 1 << 20  # of one file
NOTHING = "This session names no kernel source."
GENERATED = "A program prints the source for each configuration when it is measured: {}"
REPLAYED = "Replayed: the recording holds measurements, not the kernel's source."


@dataclass(frozen=True, slots=True)
class KernelText:
    """What a session runs. `note` says why there is no source; `command` is set where it is a program."""

    note: str = ""
    title: str = ""  # kernel, files, options
    spec: Specification | None = None
    command: Command | None = None
    source: str = ""
    changed_s: float = 0.0  # when a file changed last, s since the epoch

    def before(self, configuration: Configuration) -> str:
        """What stands in front of the source for a configuration: its #defines, or the command line itself."""
        if self.command is not None:
            return shlex.join(self.command.words(configuration)) + "\n"
        if self.spec is None:
            return ""
        from ...engine.workloads.cuda_source import define_lines

        return "\n".join([*define_lines(self.spec, configuration), "", ""])


def read_kernel_text(origin: Mapping[str, str], _stop: threading.Event | None = None) -> KernelText:
    """Read what a plan's `origin` points to. Raises InputError for a file that is gone, too large or no text."""
    if origin.get("kind") == "replay":
        return KernelText(REPLAYED)
    if not origin.get("file"):
        return KernelText(NOTHING)
    from ...engine.session.load import load_specification
    from ...engine.workloads.command import Command
    from ...files import read_text

    path = Path(origin["file"])
    spec = load_specification(path)
    if spec.command is not None:
        return KernelText(title="Command line", command=Command(spec), changed_s=path.stat().st_mtime)
    if spec.kernel is not None and spec.kernel.generator:
        return KernelText(GENERATED.format(spec.kernel.generator), spec=spec)
    if spec.kernel is None or not spec.kernel.sources:
        return KernelText(NOTHING, spec=spec)
    sources = spec.kernel.sources
    texts = [read_text(source, MAX_SOURCE_BYTES).rstrip() for source in sources]
    if len(sources) > 1:
        texts = [f"// ---- {source.name}\n{text}" for source, text in zip(sources, texts, strict=True)]
    title = " · ".join(
        (spec.kernel.name, ", ".join(source.name for source in sources), " ".join(spec.kernel.compiler_options))
    ).rstrip(" ·")
    changed_s = max(file.stat().st_mtime for file in (path, *sources))
    return KernelText(title=title, spec=spec, source="\n\n".join(texts) + "\n", changed_s=changed_s)
