"""A quick look of 8 s is enough to begin with: what it says holds, and a full look goes on from whatever is known."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.fake_board import FakeBoard
from fixtures.simulated import board
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import WattridgeError
from app.cli import main
from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.quick_look import IDLE_S, QUICK_S, Estimate, await_idle, is_busy, quick_look
from app.engine.metering.characterisation.sensor_figures import CHANNEL_OF, PARTS, Characterisation
from app.engine.metering.characterisation.store import (
    known_characterisation,
    latest_characterisation,
    one_look,
    save_characterisation,
    stored_characterisation,
    to_json,
    unfinished_characterisation,
)
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import find_sensor
from app.engine.metering.window import Window
from app.sensors.channel import PowerSample, Reading
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names


def looked_at(gpu: SimulatedGpu, seed: int = 0, **options: Any) -> Characterisation:
    found = quick_look(gpu, wave_loads(gpu), seed=seed, **options)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def whole() -> Characterisation:
    """A full look at the simulated V100."""
    gpu = board("v100")
    found = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert found is not None
    return found


# --- what it knows ---


@pytest.mark.parametrize("name", twin_names())
def test_a_quick_look_takes_at_most_8_seconds_and_its_margins_hold_the_truth(name: str) -> None:
    inside, figures_seen = 0, 0
    for seed in range(2):
        gpu = board(name, seed)
        begun_ns = gpu.clock.now_ns()
        found = looked_at(gpu, seed)
        assert (gpu.clock.now_ns() - begun_ns) / 1e9 <= 8.0 == QUICK_S
        assert not gpu.busy
        assert found.parts == ("quick look",)
        sensors = gpu.twin.sensors
        assert found.chosen == ("buffer" if sensors.buffer else "instant")
        assert found.best.usable
        true_ms = (0.0, sensors.buffer.averages_ms) if sensors.buffer else None
        if true_ms is None:
            assert sensors.instant is not None
            true_ms = sensors.instant.lag_ms, sensors.instant.window_ms
        best = found.best
        assert best.window_ms is not None
        assert best.window_margin_ms is not None
        inside += abs(best.lag_ms - true_ms[0]) <= best.lag_margin_ms + 0.05
        inside += abs(best.window_ms - true_ms[1]) <= best.window_margin_ms + 0.05
        figures_seen += 2
    assert inside >= figures_seen - 1


def test_it_ends_once_the_driver_s_samples_are_known_and_else_takes_its_time() -> None:
    with_samples, without = looked_at(board("h200")), looked_at(board("v100"))
    assert with_samples.seconds < 4.0
    assert with_samples.best.margin_ms <= 0.1 * with_samples.best.refresh_ms
    assert without.seconds > 6.0


def test_samples_that_scatter_are_looked_at_for_longer() -> None:
    quiet = load_twin("h200")
    loud = replace(quiet, sensors=replace(quiet.sensors, noise_share=0.15))
    found = looked_at(SimulatedGpu(loud, seed=1, clock=VirtualClock()), 1)
    assert found.seconds > looked_at(board("h200"), 1).seconds + 0.5


def test_what_a_quick_look_does_not_show_is_said() -> None:
    gpu = board("h200")
    save_characterisation(looked_at(gpu))
    found = stored_characterisation(gpu.info)
    assert found is not None
    assert found.aftereffect is None
    assert found.words.endswith("after a quick look")
    window = Meter(gpu).measure(wave_loads(gpu)[1])
    assert window is not None
    assert window.power_source == found.words


def test_a_loose_margin_leaves_fewer_values_to_a_window_and_a_useless_one_is_not_used() -> None:
    gpu = board("a4000")
    found = looked_at(gpu)
    instant = found.sources["instant"]
    assert instant is not None

    def sensor(margin_ms: float) -> Any:
        loose = replace(instant, lag_margin_ms=margin_ms)
        return find_sensor(gpu, replace(found, sources={**found.sources, "instant": loose}), buffered=False)

    assert sensor(0.1).margin_s == 0.0 or not instant.sharp
    assert sensor(20.0).margin_s >= 0.02
    assert "quick look" in sensor(20.0).words
    assert "quick look" not in sensor(400.0).words, "the figures of its generation count"
    assert sensor(400.0).lag_s != pytest.approx(found.best.lag_ms / 1e3, abs=1e-9)


# --- progress ---


class Progress:
    """Checks as it goes that what is done never goes back, and what there is to do never grows."""

    def __init__(self) -> None:
        self.said: list[tuple[str, float, float]] = []

    def __call__(self, what: str, done_s: float, total_s: float) -> None:
        if self.said:
            _, before_s, before_total_s = self.said[-1]
            assert total_s <= before_total_s
            assert done_s * before_total_s >= before_s * total_s
        assert what
        assert 0.0 <= done_s <= total_s
        self.said.append((what, done_s, total_s))


@pytest.mark.parametrize("name", ["h200", "a4000", "k20x"])
def test_the_progress_of_a_full_look_is_honest_and_ends_where_it_says(name: str) -> None:
    progress = Progress()
    gpu = board(name)
    assert characterise(gpu, wave_loads(gpu), patience_s=20.0, on_progress=progress) is not None
    _, done_s, total_s = progress.said[-1]
    assert done_s == total_s
    assert len({what for what, _, _ in progress.said}) == 4


@given(
    st.lists(st.floats(0.1, 30.0), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 20.0), st.booleans()), max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_an_estimate_never_goes_back_whatever_its_parts_really_take(
    most_s: list[float], steps: list[tuple[int, float, bool]]
) -> None:
    clock, progress = VirtualClock(), Progress()
    names = [f"part {number}" for number in range(len(most_s))]
    estimate = Estimate(clock, dict(zip(names, most_s, strict=True)), progress)
    at = 0
    estimate.begin(names[at])
    for number, seconds, aside in steps:
        at = max(at, min(number, len(names) - 1))
        estimate.begin(names[at])
        if aside:
            with estimate.standing():
                clock.wait(seconds)
        else:
            clock.wait(seconds)
        estimate.report()
    estimate.end()
    assert progress.said[-1][1] == progress.said[-1][2]


# --- interrupted, and going on ---


class Cut(threading.Event):
    """Set by itself when a board's clock has gone on for so long."""

    def __init__(self, gpu: SimulatedGpu, after_s: float) -> None:
        super().__init__()
        self._gpu, self._at_ns = gpu, gpu.clock.now_ns() + round(after_s * 1e9)

    def is_set(self) -> bool:
        return self._gpu.clock.now_ns() >= self._at_ns


def test_a_look_that_is_cut_anywhere_keeps_its_parts_and_goes_on_to_the_same_end() -> None:
    rng = random.Random(1)
    gpu = board("h200", 3)
    known: Characterisation | None = None
    kept: list[Characterisation] = []
    cuts = 0
    while known is None or not known.complete:
        before = () if known is None else known.parts
        after_s = rng.uniform(3.0, 45.0)
        found = characterise(
            gpu, wave_loads(gpu), characterisation=known, patience_s=40.0, on_part=kept.append, stop=Cut(gpu, after_s)
        )
        assert not gpu.busy
        known = found or known
        assert known is None or known.parts[: len(before)] == before, "what is known stays known"
        cuts += 1
        assert cuts < 40
    assert cuts > 3
    assert [each for each in known.parts if each in PARTS] == list(PARTS)
    assert kept[-1] == known
    sensors = gpu.twin.sensors
    for source, true in (("instant", sensors.instant), ("average", sensors.average)):
        figures = known.sources[source]
        assert figures is not None
        assert true is not None
        assert figures.window_ms == pytest.approx(true.window_ms, rel=0.10)
        assert figures.lag_ms == pytest.approx(true.lag_ms, rel=0.15)
    assert known.counter_ratio == pytest.approx(sensors.counter_gain, abs=0.003)
    assert known.aftereffect is not None


def test_a_quick_look_that_is_stopped_keeps_what_it_has_and_is_made_again() -> None:
    gpu = board("titan_rtx")
    assert quick_look(gpu, wave_loads(gpu), stop=Cut(gpu, 0.3)) is None
    found = looked_at(gpu, stop=Cut(gpu, 5.5))
    whole = looked_at(board("titan_rtx"))
    assert found.parts == ()
    assert not gpu.busy
    assert found.best.margin_ms > whole.best.margin_ms, "less was seen"
    save_characterisation(found)
    assert stored_characterisation(gpu.info) is not None


def test_an_unfinished_look_never_takes_the_place_of_a_finished_one(whole: Characterisation) -> None:
    gpu = board("v100")
    quick = looked_at(gpu)
    save_characterisation(whole)
    save_characterisation(quick)
    stored = stored_characterisation(gpu.info)
    assert stored is not None
    assert stored.complete
    begun = unfinished_characterisation(gpu.info)
    assert begun is not None
    assert begun.parts == quick.parts
    save_characterisation(whole)
    assert unfinished_characterisation(gpu.info) is None


def test_the_command_goes_on_where_it_was_interrupted_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[Characterisation] = []

    def killed_after_two(found: Characterisation) -> Path:
        path = save_characterisation(found)
        saved.append(found)
        if len(saved) == 2:
            raise KeyboardInterrupt
        return path

    at = "app.engine.metering.characterisation.store.save_characterisation"
    with monkeypatch.context() as patched:
        patched.setattr(at, killed_after_two)
        assert main(["characterise", "--gpu", "simulated:k20x", "--json"]) != 0
    capsys.readouterr()
    assert main(["characterise", "--gpu", "simulated:k20x", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "after a quick look" in shown
    assert "not looked at yet: wave, aftereffect" in shown
    assert main(["characterise", "--gpu", "simulated:k20x", "--json", "--when-idle"]) == 0
    output = capsys.readouterr()
    assert "going on from what is kept: quick look, steps" in output.err
    document = json.loads(output.out)
    assert document["complete"]
    assert document["parts"][:2] == ["quick look", "steps"]


def test_a_look_that_is_killed_in_the_middle_of_a_part_goes_on_from_what_it_had(own_data_folder: Path) -> None:
    words = ["characterise", "--gpu", "simulated:titan_rtx", "--json"]
    killed = (
        "import os, signal, sys\n"
        "from app.cli import main\n"
        "from app.engine.metering.characterisation.square_wave import WaveDriver\n"
        "poll, polls = WaveDriver._poll, [0]\n"
        "def counted(*given):\n"
        "    polls[0] += 1\n"
        "    if polls[0] == 6000:\n"  # the quick look has about 3600
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    poll(*given)\n"
        "WaveDriver._poll = counted\n"
        f"main({words!r})\n"
    )
    process = subprocess.run([sys.executable, "-c", killed], capture_output=True, check=False)
    assert process.returncode == -signal.SIGKILL
    [file] = (own_data_folder / "characterisations").glob("*.json")
    assert json.loads(file.read_text())["parts"] == ["quick look"]
    again = subprocess.run([sys.executable, "-m", "app", *words], capture_output=True, text=True, check=True)
    assert "going on from what is kept: quick look" in again.stderr
    assert json.loads(again.stdout)["complete"]
    assert list(file.parent.glob("*.unfinished.json")) == []


# --- another board of the model ---


def test_a_look_at_another_board_of_the_model_is_a_prior_that_says_so_and_widens_intervals() -> None:
    gpu = board("h200", 1)
    other = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert other is not None

    def measured() -> Window:
        one = board("h200", 5)
        window = Meter(one).measure(wave_loads(one)[2])
        assert window is not None
        assert window.power_interval_w is not None
        return window

    def half(window: Window) -> float:
        assert window.power_interval_w is not None
        return (window.power_interval_w[1] - window.power_interval_w[0]) / 2 / window.power_w

    file = save_characterisation(other)
    own = measured()
    assert own.power_source.endswith("characterised")
    file.unlink()
    save_characterisation(replace(other, uuid="GPU-another"))
    assert stored_characterisation(gpu.info) is None
    prior = known_characterisation(gpu.info)
    assert prior is not None
    assert prior.prior
    assert to_json(prior)["prior"] is True
    as_another = measured()
    assert as_another.power_source.endswith("as of another GPU of this model")
    assert as_another.aftereffect_w == 0.0, "what the load before leaves behind is a board's own"
    assert half(as_another) > half(own)
    save_characterisation(looked_at(gpu))
    known = known_characterisation(gpu.info)
    assert known is not None
    assert (known.uuid, known.prior) == (gpu.info.uuid, False), "its own look takes the place, though it is quick"


def test_a_session_s_board_has_its_own_look_though_another_of_the_model_was_looked_at_later(
    whole: Characterisation,
) -> None:
    gpu = board("v100")
    save_characterisation(whole)
    save_characterisation(replace(whole, uuid="GPU-another", timestamp_s=whole.timestamp_s + 1))
    model = gpu.info.name, gpu.info.driver
    for uuid in (gpu.info.uuid, "GPU-another"):
        own = latest_characterisation(*model, uuid)
        assert own is not None
        assert own.uuid == uuid
        assert own.notes == whole.notes
    third, any_one = latest_characterisation(*model, "GPU-third"), latest_characterisation(*model)
    assert third is not None
    assert any_one is not None
    assert third.uuid == any_one.uuid == "GPU-another"
    assert third.notes[-1] == "this is a look at another GPU of this model"
    assert "several GPUs" in any_one.notes[-1]


def test_a_look_of_another_driver_or_power_source_is_no_prior(whole: Characterisation) -> None:
    gpu = board("v100")
    save_characterisation(replace(whole, uuid="GPU-another"))
    assert known_characterisation(gpu.info) is not None
    assert known_characterisation(replace(gpu.info, driver="600.1")) is None
    assert known_characterisation(replace(gpu.info, power_source="a buffer it has now")) is None
    assert known_characterisation(replace(gpu.info, name="NVIDIA V100 of another kind")) is None


def test_a_board_whose_power_source_has_changed_is_looked_at_from_the_beginning() -> None:
    gpu = board("v100")
    save_characterisation(looked_at(gpu))
    changed = replace(gpu.info, power_source="a buffer it has now")
    assert unfinished_characterisation(gpu.info) is not None
    assert unfinished_characterisation(changed) is None
    assert stored_characterisation(changed) is None
    save_characterisation(replace(looked_at(gpu), declared=changed.power_source))
    assert stored_characterisation(changed) is not None
    assert stored_characterisation(gpu.info) is None, "it was another one then"


def test_a_look_that_version_1_kept_is_of_no_board_known_and_stands_in_until_there_is_one(
    own_data_folder: Path, whole: Characterisation
) -> None:
    gpu = board("v100")
    document = to_json(whole)
    for key in ("uuid", "parts", "prior", "complete"):
        del document[key]
    for figures in document["sources"].values():
        if figures is not None:
            del figures["answer"]["settled_s"]
    folder = own_data_folder / "characterisations"
    folder.mkdir(parents=True)
    (folder / "tesla-v100-simulated-01234567.json").write_text(json.dumps({**document, "version": 1}))
    assert stored_characterisation(gpu.info) is None
    prior = known_characterisation(gpu.info)
    assert prior is not None
    assert prior.prior
    assert latest_characterisation(gpu.info.name, gpu.info.driver) is not None
    (folder / "tesla-v100-simulated-01234567.json").write_text(json.dumps({**document, "version": 3}))
    assert known_characterisation(gpu.info) is None


# --- adverse boards ---


class Shared(SimulatedGpu):
    """Another process works on the board now and then, and draws as much again."""

    def _more_w(self, time_ns: int) -> float:
        return 150.0 if random.Random(time_ns // 130_000_000).random() < 0.5 else 0.0

    def read(self) -> Reading:
        reading, polled = super().read(), set(CHANNEL_OF.values())
        refreshed_ns = reading.time_ns - reading.time_ns % 100_000_000
        more_w = self._more_w(refreshed_ns)
        values = [v + more_w if c.name in polled else v for c, v in zip(self.channels, reading.values, strict=True)]
        return Reading(reading.time_ns, tuple(values))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        return [PowerSample(s.time_ns, s.power_w + self._more_w(s.time_ns)) for s in super().power_samples(since_ns)]


@pytest.mark.parametrize("name", ["a100", "h200"])
def test_a_board_on_which_something_else_runs_is_not_characterised(name: str) -> None:
    gpu = Shared(load_twin(name), clock=VirtualClock())
    with pytest.raises(WattridgeError, match="something else runs"):
        quick_look(gpu, wave_loads(gpu))
    assert not gpu.busy


class Jumping(VirtualClock):
    """Now and then the program is not run for a while: the clock has jumped when it looks again."""

    def __init__(self, seed: int, jump_s: float) -> None:
        super().__init__()
        self._random, self._jump_s = random.Random(seed), jump_s

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        if self._random.random() < 0.001:
            super().wait(self._jump_s)
        return super().wait(seconds, stop)


@pytest.mark.parametrize("jump_s", [0.1, 3.0])
def test_a_look_by_a_program_that_is_held_up_says_nothing_wrong(jump_s: float) -> None:
    looks = 0
    for seed in range(6):
        gpu = SimulatedGpu(load_twin("titan_rtx"), seed=seed, clock=Jumping(seed, jump_s))
        progress = Progress()
        try:
            estimate = Estimate(gpu.clock, {"look": QUICK_S}, progress)
            estimate.begin("look")
            found = looked_at(gpu, seed, estimate=estimate)
        except WattridgeError:
            continue
        looks += 1
        true, best = gpu.twin.sensors.instant, found.best
        assert true is not None
        if not best.usable:
            continue
        assert best.lag_ms == pytest.approx(true.lag_ms, abs=best.lag_margin_ms + 2.0)
        assert best.window_ms == pytest.approx(true.window_ms, abs=(best.window_margin_ms or 0.0) + 3.0)
    assert looks >= 3


def test_one_process_at_a_time_looks_at_a_board() -> None:
    gpu, other = board("a100"), board("h200")
    with one_look(gpu.info) as first, one_look(gpu.info) as second, one_look(other.info) as elsewhere:
        assert (first, second, elsewhere) == (True, False, True)
    with one_look(gpu.info) as again:
        assert again
    with one_look(gpu.info), pytest.raises(BrokenPipeError), one_look(gpu.info):
        raise BrokenPipeError("of what is done meanwhile, not of the lock")


def test_a_look_with_time_waits_for_a_board_that_works() -> None:
    gpu = board("a100")
    others = wave_loads(gpu)[0]
    gpu.begin(others)
    waits = 0

    class Ending(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return False

        def is_set(self) -> bool:
            nonlocal waits
            waits += 1
            if waits == 40:
                gpu.end()
            return False

    begun_ns = gpu.clock.now_ns()
    await_idle(gpu, Ending())
    assert waits > 40
    assert not is_busy(gpu)
    assert (gpu.clock.now_ns() - begun_ns) / 1e9 >= IDLE_S + 40 * 0.2
    with pytest.raises(WattridgeError, match="whether it idles"):
        await_idle(FakeBoard(), None)
