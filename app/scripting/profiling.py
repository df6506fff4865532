"""`from wattridge import profile`: where the joules of a block of code go.

    with profile(gpu=0) as p:
        train()
    print(p, p.result.families[0])
    p.save("profiled")

What this process launches in the block is watched, as `wattridge profile` watches a program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from ..base.errors import InputError, WattridgeError
from ..engine.profile.export_profile import export_profile
from ..engine.profile.injected import wattridge_watcher
from ..engine.profile.live_profile import VARIABLE, LiveProfile, Profiled
from ..engine.profile.program_profile import ProgramProfile
from ..sensors.select import open_gpu


def profile(gpu: int | str | None = None) -> Profiling:
    """Profile the block of a `with` statement.

    Parameters
    ----------
    gpu : int, str or None, optional
        The board whose power is read and whose kernels count: an index or a UUID; None is the first.

    Returns
    -------
    Profiling
        The profile, once the block has ended.

    Raises
    ------
    InputError
        On entering, where this process cannot be watched or there is no such board.
    SensorError
        On entering, if the board does not open.

    Examples
    --------
    >>> import wattridge
    >>> work = wattridge.profile(gpu=0)
    >>> work
    <profile: no result yet>
    >>> with work:  # doctest: +SKIP
    ...     train()
    >>> work.result.energy_j  # doctest: +SKIP
    """
    return Profiling(gpu)


class Profiling:
    """A profiled block. Its profile is there once the block has ended; before that it raises WattridgeError."""

    def __init__(self, gpu: int | str | None) -> None:
        self._gpu = None if gpu is None else str(gpu)
        self._live: LiveProfile | None = None
        self._watcher: wattridge_watcher.Watcher | None = None
        self._profiled: Profiled | None = None

    def __enter__(self) -> Profiling:
        if self._live is not None:
            raise WattridgeError("this block has been profiled already", "profile", "call profile() once per block")
        if VARIABLE in os.environ:
            raise InputError("this program is profiled as a whole", "profile", "run it without `wattridge profile`")
        self._live = LiveProfile(open_gpu(self._gpu, voltage=False))
        try:
            self._watcher = wattridge_watcher.Watcher(str(self._live.folder))
        except (wattridge_watcher.Problem, OSError) as error:
            self._live.close()
            raise InputError(
                f"this process cannot be watched: {error}", "profile", "see the guide, `program`"
            ) from None
        if "torch" in sys.modules:
            wattridge_watcher.hook_pytorch(self._watcher, sys.modules["torch"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._live is not None
        assert self._watcher is not None
        self._watcher.stop()
        try:
            if error is None:
                self._profiled = self._live.profile(Path(sys.argv[0] or "block").stem)
        finally:
            self._live.close()

    @property
    def result(self) -> ProgramProfile:
        """Families, ranges and gaps, each with `energy_j` and its 95 % interval, J, `time_s` and `power_w`."""
        return self._both[0]

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write the profile, a trace for Perfetto, speedscope and CSV.

        Parameters
        ----------
        folder : str or Path
            Where to; it is made if it is not there.
        force : bool, optional
            Whether to replace files.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        WattridgeError
            If a file is there and not `force`, or the block has not ended.
        """
        return export_profile(*self._both, Path(folder), force=force)

    def __repr__(self) -> str:
        if self._profiled is None:
            return "<profile: no result yet>"
        result = self.result
        most = f"; most of it {result.families[0].name}" if result.families else ""
        return f"<profile: {result.energy_j:.4g} J in {result.time_s:.4g} s on {result.gpu}{most}>"

    @property
    def _both(self) -> Profiled:
        if self._profiled is None:
            raise WattridgeError("the block has not ended yet", "profile", "look at the profile after the block")
        return self._profiled
