"""A session with meters beside its board: the energy of every source, the gain of its sensor, and which one counts."""

from __future__ import annotations

import math
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.metering.external_meters import MeterChoice
from app.engine.metering.gain import known_gain
from app.engine.results.measurement import of_sources
from app.engine.session.describe_session import describe_session
from app.engine.session.gains import choice_of_origin, gain_of_origin, gains_by_meter
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification
from app.engine.session.run import run_session
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu

EXAMPLE = resources() / "examples" / "dot.toml"
METER_READS = 0.97  # of what the board draws, so the board's own sensor seems to report 1 / 0.97 of it


def session(
    choice: MeterChoice | None, *, evaluations: int = 8, gpu: Gpu | None = None, seed: int = 1
) -> tuple[SessionResult, Gpu]:
    board = gpu or open_gpu("simulated:a100", speed=math.inf)
    options = SearchOptions(
        strategy="random_sample", max_evaluations=evaluations, seed=seed, meters=choice, device_settings={}
    )
    plan = plan_specification(load_specification(EXAMPLE), board, options)
    with closing(Store()) as store:
        return run_session(plan, store, lambda _: None, threading.Event()), board


def values_of(result: SessionResult) -> list[dict[str, float]]:
    return [dict(result.table.measurement(index).values) for index in range(len(result.table))]


def test_every_configuration_keeps_the_energy_of_every_source() -> None:
    result, _ = session(MeterChoice((f"simulated:{METER_READS}", "simulated:1.5")))
    measured = [each for each in values_of(result) if "energy_j" in each]
    assert len(measured) > 5
    for each in measured:
        assert each["energy_board_j"] == pytest.approx(each["power_board_w"] * each["time_s"])
        assert each["energy_raw_j"] == pytest.approx(each["energy_board_j"], rel=1e-6)
        assert each["energy_simulated_2_j"] / each["energy_simulated_j"] == pytest.approx(1.5 / METER_READS, rel=1e-6)


def test_an_analysis_does_not_take_the_sources_for_figures_of_their_own() -> None:
    result, _ = session(MeterChoice((f"simulated:{METER_READS}",)))
    names = of_sources(result.table.value_names)
    assert names == {"power_board_w", "energy_board_j", "power_simulated_w", "energy_simulated_j"}
    assert of_sources({"power_rapl_w", "energy_rapl_j", "power_w", "energy_j", "energy_raw_j", "power_raw_w"}) == set()


def test_each_meter_shows_a_gain_of_the_boards_sensor_or_why_not() -> None:
    result, _ = session(MeterChoice((f"simulated:{METER_READS}", "simulated:1.5")), evaluations=20)
    found = gains_by_meter(result.table)
    assert found.keys() == {"simulated", "simulated_2"}
    gains = [gain for gain in found.values() if not isinstance(gain, str)]
    assert {gain.meter: gain.gain for gain in gains} == pytest.approx(
        {"simulated": 1 / METER_READS, "simulated_2": 1 / 1.5}, rel=0.005
    )
    few, _ = session(MeterChoice(("simulated",)), evaluations=2)
    assert "a gain needs 5 windows" in str(gains_by_meter(few.table)["simulated"])
    without, _ = session(None, evaluations=2)
    assert gains_by_meter(without.table) == {}


def test_they_are_stored_and_loaded_with_their_intervals() -> None:
    result, _ = session(MeterChoice((f"simulated:{METER_READS}",)), evaluations=6)
    with closing(Store()) as store:
        loaded = store.load(result.session).table
    for index in range(len(loaded)):
        stored, measured = loaded.measurement(index), result.table.measurement(index)
        assert stored.values == measured.values
        if "energy_simulated_j" in stored.values:
            low, high = stored.intervals["energy_simulated_j"]
            assert low <= stored.values["energy_simulated_j"] <= high


def test_the_sensors_gain_is_found_within_three_thousandths_kept_and_not_applied() -> None:
    result, board = session(MeterChoice((f"simulated:{METER_READS}",)))
    gain = gain_of_origin(result.plan.origin)
    assert gain is not None
    assert gain.gain == pytest.approx(1 / METER_READS, rel=0.003)
    assert gain.interval[0] < 1 / METER_READS < gain.interval[1] or gain.interval[1] - gain.interval[0] < 0.002
    assert known_gain(board.info) == gain
    [figure] = [
        each for each in describe_session(result.plan, result.table).figures if each.label == "Gain of the sensor"
    ]
    assert gain.words in str(figure.value)
    plain, _ = session(None)
    assert values_of(plain)[0]["power_raw_w"] == pytest.approx(values_of(result)[0]["power_raw_w"], rel=0.02)


def test_the_gain_is_taken_out_only_if_asked_and_says_so() -> None:
    with pytest.raises(WattridgeError, match="no gain of this board's sensor is known"):
        session(MeterChoice(corrected=True))
    session(MeterChoice((f"simulated:{METER_READS}",)))
    plain, _ = session(None, evaluations=6)
    corrected, _ = session(MeterChoice(corrected=True), evaluations=6)
    for was, now in zip(values_of(plain), values_of(corrected), strict=True):
        if "power_raw_w" in was:
            assert now["power_raw_w"] / was["power_raw_w"] == pytest.approx(METER_READS, rel=0.02)
    said = [corrected.table.measurement(index).power_source for index in range(len(corrected.table))]
    assert any("corrected by its gain of 1.03" in words for words in said)
    labels = [each.label for each in describe_session(corrected.plan, corrected.table).figures]
    assert "Corrected by" in labels


def test_the_energy_that_counts_may_be_the_meters() -> None:
    result, _ = session(MeterChoice((f"simulated:{METER_READS}",), energy_from="simulated"), evaluations=6)
    for index in range(len(result.table)):
        measurement = result.table.measurement(index)
        if "energy_j" in measurement.values:
            values = measurement.values
            assert values["energy_raw_j"] == pytest.approx(values["energy_simulated_j"], rel=1e-9)
            assert measurement.power_source.startswith("simulated: ")


def test_a_resumed_session_has_its_meters_again() -> None:
    choice = MeterChoice((f"simulated:{METER_READS}",), energy_from="simulated")
    first, _ = session(choice, evaluations=3)
    assert choice_of_origin(first.plan.origin) == choice
    with closing(Store()) as store:
        plan = plan_resume(
            store, first.session, SearchOptions(max_evaluations=5), gpu=open_gpu("simulated:a100", speed=math.inf)
        )
        again = run_session(plan, store, lambda _: None, threading.Event())
    assert len(again.table) > len(first.table)
    assert all("energy_simulated_j" in each for each in values_of(again) if "energy_j" in each)


def test_a_specification_may_name_its_meters_and_is_written_with_them(tmp_path: Path) -> None:
    spec = load_specification(EXAMPLE)
    choice = MeterChoice(("simulated:0.97", "rapl"), "simulated", corrected=False)
    document = document_of(replace(spec, meters=choice), EXAMPLE.parent)
    assert specification_of(document, EXAMPLE).meters == choice
    assert specification_of(document_of(spec, EXAMPLE.parent), EXAMPLE).meters == MeterChoice()


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (MeterChoice(("powersensor9:/dev/null",)), "lives|real time|names no meter"),
        (MeterChoice(("simulated",), energy_from="nvml"), "choose one of board, median, simulated"),
        (MeterChoice(("simulated",), energy_from="simulated", corrected=True), "needs no correction"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_before_anything_is_written(choice: MeterChoice, said: str) -> None:
    with pytest.raises(InputError, match=said):
        session(choice)
    with closing(Store()) as store:
        assert store.sessions() == []
