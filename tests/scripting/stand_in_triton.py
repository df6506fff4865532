"""What Triton documents of its autotuner: each configuration is benched, and the least of what the hook returns wins.

Choices may be kept on disk, under a key that leaves the hook out; a listener hears of every choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Config:
    """A configuration of a kernel."""

    def __init__(self, kwargs: dict[str, Any], num_warps: int = 4, pre_hook: Callable[..., None] | None = None) -> None:
        self.kwargs, self.num_warps, self.pre_hook = kwargs, num_warps, pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        return {**self.kwargs, "num_warps": self.num_warps}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())


class Kernel:
    """A compiled kernel: `kernel[grid](*args, **meta)` launches it."""

    arg_names: tuple[str, ...] | list[str] = ()

    def __init__(self, launch: Callable[..., None]) -> None:
        self.fn = launch

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.fn


class OutOfResources(Exception):
    """A configuration that the device has no room for."""


def stand_in(disk: Path) -> Any:
    """The module, which keeps choices in that file."""
    autotuning = SimpleNamespace(listener=None, cache=False)

    class Autotuner:
        def __init__(self, kernel: Kernel, configs: list[Config], do_bench: Any, cache_results: bool = False) -> None:
            self.kernel, self.configs, self.do_bench = kernel, configs, do_bench
            self.cache_results = cache_results or autotuning.cache
            self.cache: dict[Any, Config] = {}

        def _bench(self, *args: Any, config: Config) -> Any:
            def kernel_call() -> None:
                assert config in self.configs
                self.kernel[(1,)](*args, **config.all_kwargs())

            try:
                return self.do_bench(kernel_call, quantiles=(0.5, 0.2, 0.8))
            except OutOfResources:
                return [float("inf")] * 3

        def run(self, *args: Any) -> Config:
            key = ("key",)
            if key not in self.cache:
                hit = self.cache_results and disk.exists()
                if hit:
                    kept = json.loads(disk.read_text())
                    timings = dict(zip(self.configs, kept, strict=True))
                else:
                    timings = {config: self._bench(*args, config=config) for config in self.configs}
                self.cache[key] = min(timings, key=timings.__getitem__)
                if self.cache_results and not hit:
                    disk.write_text(json.dumps(list(timings.values())))
                if autotuning.listener is not None:
                    autotuning.listener(
                        fn=self.kernel, key=key, best_config=self.cache[key], configs_timings=timings, cache_hit=hit
                    )
            return self.cache[key]

    return SimpleNamespace(knobs=SimpleNamespace(autotuning=autotuning), Autotuner=Autotuner, __name__="triton")
