"""What Helion 1.5 documents of its autotuner: `autotuner_fn` is asked for each bound kernel, and `autotune` chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any


class Config(Mapping[str, object]):
    """A configuration: a mapping that can be a key."""

    def __init__(self, **config: object) -> None:
        self.config = config

    def __getitem__(self, name: str) -> object:
        return self.config[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.config)

    def __len__(self) -> int:
        return len(self.config)

    def __hash__(self) -> int:
        return hash(str(sorted(self.config.items())))


class BoundKernel:
    """A kernel with the shapes of its arguments. `launch` runs one configuration and returns its result."""

    def __init__(self, launch: Callable[..., Any], drawn: list[Config], autotuner_fn: Any, **settings: object) -> None:
        self.settings = SimpleNamespace(autotuner_fn=autotuner_fn, autotune_config_overrides=None, **settings)
        self.kernel = SimpleNamespace(name="add", configs=[])
        self.compiled: list[Config] = []
        self.asked: list[int] = []
        self._launch = launch
        self._run: Callable[..., Any] | None = None

        def generation(*, overrides: object = None) -> Any:
            assert overrides is None

            def random_population(n: int) -> list[Config]:
                self.asked.append(n)
                return drawn

            return SimpleNamespace(random_population=random_population)

        self.config_spec = SimpleNamespace(
            create_config_generation=generation, default_config=lambda: drawn[0] if drawn else Config()
        )

    def compile_config(self, config: Config, *, allow_print: bool = True) -> Callable[..., Any]:
        assert not allow_print
        self.compiled.append(config)
        return lambda *args: self._launch(*args, **config)

    def __call__(self, *args: Any) -> Any:
        if self._run is None:
            tuner = self.settings.autotuner_fn(self, args)
            self._run = self.compile_config(tuner.autotune(skip_cache=False), allow_print=False)
        return self._run(*args)
