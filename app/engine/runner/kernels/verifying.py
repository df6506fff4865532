"""Outputs checked by the user's own program: it gets them as files, and its exit status says whether they are right."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from ...children.scratch import scratch_folder
from ...workloads.command import fill_places
from ...workloads.subprocesses import run_process
from .gpu import ProcessGpu

VERIFY_S: Final = 300.0
_SHOWN: Final = 2000  # characters of what a program says


def verify_by_program(
    words: Sequence[str], arrays: Collection[str], gpu: ProcessGpu, folder: Path, stop: threading.Event
) -> str:
    """What is wrong with the outputs of the launch before, in words; empty if nothing is, or when stopped.

    `{name}` in the words stands for the file of an array (.npy). Raises KernelFailed.
    """
    named = {name for word in words for name in re.findall(r"\{(\w+)\}", word)} & set(arrays)
    kept = Path(scratch_folder())
    try:
        gpu.ask({"do": "save", "names": sorted(named), "folder": str(kept)})
        filled = fill_places(list(words), {name: str(kept / f"{name}.npy") for name in named})
        program = Path(filled[0]).name
        try:
            ended = run_process(filled, folder=folder, timeout_s=VERIFY_S, stop=stop)
        except (OSError, ValueError) as error:  # ValueError: a NUL in a word
            return f"{program} does not start: {error}"
        if ended.stopped or (ended.exit_status == 0 and not ended.timed_out):
            return ""
        how = f"took longer than {VERIFY_S:g} s" if ended.timed_out else ended.how
        message = (ended.errors.strip() or ended.output.strip())[-_SHOWN:]
        return f"{program} says that the output is wrong: {how}" + (f"\n{message}" if message else "")
    finally:
        shutil.rmtree(kept, ignore_errors=True)
