"""`wattridge.triton`: a hook of Triton's autotuner that chooses by energy, and tuning over configurations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.stand_in_torch import Device
from fixtures.stand_in_torch import stand_in as torch_stand_in
from fixtures.stand_in_triton import Config, Kernel, OutOfResources
from fixtures.stand_in_triton import stand_in as triton_stand_in

from app.base.errors import InputError, WattridgeError
from app.scripting import triton as wattridge_triton


def nothing(*_: object, **__: object) -> None:
    """A kernel that is never measured."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setitem(sys.modules, "torch", torch_stand_in(made))
    return made


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = triton_stand_in(tmp_path / "kept.json")
    monkeypatch.setitem(sys.modules, "triton", made)
    return made


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """Seconds and joules of each configuration, in place of measurements."""
    figures: dict[str, tuple[float, float]] = {}

    def measured(self: Any, kernel_call: Any) -> dict[str, Any]:
        _, configuration = wattridge_triton._asked_by(kernel_call)
        time_s, energy_j = figures[configuration.split(": ")[1].split(",")[0]]
        return {"time_s": time_s, "energy_j": energy_j, "power_w": energy_j / time_s, "unknown": ""}

    monkeypatch.setattr(wattridge_triton.Bench, "_measured", measured)
    return figures


def configs(*names: int) -> list[Config]:
    return [Config({"block": name}) for name in names]


def test_the_hook_measures_a_launch_and_triton_takes_the_least(device: Device, triton: Any) -> None:
    def launch(block: int, num_warps: int) -> None:
        device.launch(block * 0.1)  # long enough that a busy host is never behind

    hook = wattridge_triton.bench(minimise="energy", gpu=SteadySensors(), target=0.2)
    best = triton.Autotuner(Kernel(launch), configs(4, 2), hook).run()
    assert best.kwargs == {"block": 2}
    four, two = hook.rows
    assert four["configuration"].startswith("block: 4")
    assert two["time_s"] == pytest.approx(0.2)
    assert two["energy_j"] == pytest.approx(300.0 * two["time_s"], rel=0.01)
    assert four["energy_j"] > two["energy_j"]


def test_short_launches_are_recorded_and_gaps_are_never_counted(
    device: Device, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch() -> None:
        if device.captured is None:
            sleep(1e-3)  # Python is slower than the device
        device.launch(1e-4)

    hook = wattridge_triton.bench(gpu=SteadySensors(), target=0.2)
    with pytest.raises(WattridgeError, match="waits for Python"):
        hook(launch)
    by_time = wattridge_triton.bench(minimise="time", gpu=SteadySensors(), target=0.2)
    assert by_time(launch)[0] == pytest.approx(1e-4)
    monkeypatch.setitem(sys.modules, "torch", torch_stand_in(device, graphs=True))
    score = hook(launch)
    assert hook.rows[-1]["time_s"] == pytest.approx(1e-4)
    assert score[0] == pytest.approx(300.0 * 1e-4, rel=0.02)


def test_a_limit_on_slowdown_is_about_the_whole_set_whatever_the_order(
    triton: Any, scored: dict[str, tuple[float, float]]
) -> None:
    scored |= {"1": (1.00, 9.0), "2": (1.02, 7.0), "3": (1.50, 1.0), "4": (1.01, 8.0)}
    for order in ((1, 2, 3, 4), (3, 2, 4, 1), (4, 3, 1, 2)):
        hook = wattridge_triton.bench(within=0.03)
        assert triton.Autotuner(Kernel(nothing), configs(*order), hook).run().kwargs == {"block": 2}
        free = wattridge_triton.bench()
        assert triton.Autotuner(Kernel(nothing), configs(*order), free).run().kwargs == {"block": 3}
        fastest = wattridge_triton.bench(minimise="time")
        assert triton.Autotuner(Kernel(nothing), configs(*order), fastest).run().kwargs == {"block": 1}


def test_one_hook_serves_several_kernels_and_keys(triton: Any, scored: dict[str, tuple[float, float]]) -> None:
    hook = wattridge_triton.bench(within=0.03)
    scored |= {"1": (1e-6, 9.0), "2": (1.02e-6, 7.0)}
    assert triton.Autotuner(Kernel(nothing), configs(1, 2), hook).run().kwargs == {"block": 2}
    scored |= {"1": (1.0, 9.0), "2": (1.5, 7.0)}
    assert triton.Autotuner(Kernel(nothing), configs(2, 1), hook).run().kwargs == {"block": 1}


def test_a_configuration_without_room_is_tritons_to_refuse(triton: Any, scored: dict[str, tuple[float, float]]) -> None:
    scored |= {"1": (1.0, 9.0), "2": (1.0, 7.0), "3": (1.0, 1.0)}

    def launch(block: int, num_warps: int) -> None:
        if block == 3:
            raise OutOfResources

    for order in ((1, 2, 3), (3, 2, 1)):
        hook = wattridge_triton.bench()
        assert triton.Autotuner(Kernel(launch), configs(*order), hook).run().kwargs == {"block": 2}


def test_a_choice_from_disk_that_the_hook_did_not_make_is_refused(
    triton: Any, scored: dict[str, tuple[float, float]]
) -> None:
    heard: list[bool] = []
    triton.knobs.autotuning.listener = lambda **said: heard.append(said["cache_hit"])
    by_time = triton.Autotuner(Kernel(nothing), configs(1, 2), lambda call, quantiles: [1.0, 1.0, 1.0], True)
    by_time.run()
    tuner = triton.Autotuner(Kernel(nothing), configs(1, 2), wattridge_triton.bench(within=0.03), True)
    for _ in range(2):  # it stays refused
        with pytest.raises(InputError, match="disk cache"):
            tuner.run()
    others = triton.Autotuner(Kernel(nothing), configs(1, 2), lambda call, quantiles: [1.0, 1.0, 1.0], True)
    others.run()  # without the hook nothing is refused
    assert heard == [False, True]


def test_a_choice_from_disk_that_the_hook_made_is_taken(
    triton: Any, scored: dict[str, tuple[float, float]], tmp_path: Path
) -> None:
    scored |= {"1": (1.00, 9.0), "2": (1.02, 7.0), "3": (1.50, 1.0)}
    first = triton.Autotuner(Kernel(nothing), configs(1, 2, 3), wattridge_triton.bench(within=0.03), True)
    assert first.run().kwargs == {"block": 2}
    assert (tmp_path / "kept.json").exists()
    scored.clear()  # nothing is measured again
    again = triton.Autotuner(Kernel(nothing), configs(1, 2, 3), wattridge_triton.bench(within=0.03), True)
    assert again.run().kwargs == {"block": 2}
    for other in (wattridge_triton.bench(), wattridge_triton.bench(minimise="time", within=0.03)):
        with pytest.raises(InputError, match="disk cache"):
            triton.Autotuner(Kernel(nothing), configs(1, 2, 3), other, True).run()


def test_without_a_listener_choices_on_disk_are_refused_when_they_would_be_made(
    triton: Any, scored: dict[str, tuple[float, float]]
) -> None:
    hook = wattridge_triton.bench()
    triton.knobs.autotuning.listener = None  # as of a release that has none
    with pytest.raises(InputError, match="cache_results"):
        triton.Autotuner(Kernel(nothing), configs(1, 2), hook, True).run()


def test_a_kernel_is_tuned_over_its_configurations_into_a_table_and_a_front(device: Device) -> None:
    seen: list[dict[str, Any]] = []

    def launch(x: int, block: int, num_warps: int) -> None:
        seen.append({"x": x, "block": block, "num_warps": num_warps})
        device.launch(block * 1e-3)

    result = wattridge_triton.tune(
        Kernel(launch),
        [Config({"block": 3}, num_warps=8), Config({"block": 1})],
        (7,),
        grid=(1,),
        gpu=SteadySensors(),
        target=0.2,
        quiet=True,
    )
    assert result.best == {"block": 1, "num_warps": 4}
    assert {(row["block"], row["num_warps"]) for row in result.rows()} == {(3, 8), (1, 4)}
    assert {(each["x"], each["block"], each["num_warps"]) for each in seen} == {(7, 3, 8), (7, 1, 4)}
    assert len(result.front) == 1
    assert "launch" in repr(result)


def test_a_hook_of_a_configuration_sees_all_arguments_by_their_names(device: Device) -> None:
    seen: list[dict[str, Any]] = []
    kernel = Kernel(lambda x, size, block, num_warps: device.launch(0.1))
    kernel.arg_names = ["x", "size", "block"]
    config = Config({"block": 1}, pre_hook=lambda named: seen.append(dict(named)))
    wattridge_triton.tune(
        kernel, [config], (7,), grid=(1,), keywords={"size": 3}, gpu=SteadySensors(), target=0.2, quiet=True
    )
    assert seen[0] == {"x": 7, "size": 3, "block": 1, "num_warps": 4}


def test_a_kernel_with_an_autotuner_of_its_own_is_refused(triton: Any) -> None:
    tuner = triton.Autotuner(Kernel(nothing), configs(1, 2), None)
    tuner.fn = tuner.kernel
    with pytest.raises(InputError, match="an autotuner of its own"):
        wattridge_triton.tune(tuner, configs(1, 2), (), grid=(1,))


@pytest.mark.parametrize("given", [{"minimise": "nonsense"}, {"within": -0.1}])
def test_what_the_hook_cannot_do_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        wattridge_triton.bench(**given)


def test_a_set_without_configurations_or_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="no configurations"):
        wattridge_triton.tune(Kernel(nothing), [], (), grid=(1,))
    with pytest.raises(InputError, match="strategies"):
        wattridge_triton.tune(Kernel(nothing), configs(1), (), grid=(1,), strategies="x", quiet=True)


def test_neither_triton_nor_pytorch_is_imported() -> None:
    code = "import sys, app; app.triton.bench; print([m for m in ('torch', 'triton') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
