"""What a profile offers next: only steps that exist, and only where the data show the reason."""

from __future__ import annotations

import pytest

from app.engine.profile.families import Family
from app.engine.profile.next_steps import next_steps, operator_of
from app.engine.profile.program_profile import FamilyEnergy, GapEnergy, GroupEnergy, NextStep
from app.engine.profile.program_trace import OperatorCall

BF16 = ("c10::BFloat16", "c10::BFloat16")
NO_GAPS = GapEnergy(0, 0.0, 0.0, (0.0, 0.0), float("nan"), 0.0, 0, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("call", "notation"),
    [
        (OperatorCall("aten::mm", ((128, 64), (64, 32)), BF16), "mm:1,128,32,64:bf16"),
        (OperatorCall("aten::addmm", ((32,), (128, 64), (64, 32)), ("float",) * 3), "mm:1,128,32,64"),
        (OperatorCall("aten::bmm", ((8, 128, 64), (8, 64, 32)), ("c10::Half",) * 2), "mm:8,128,32,64:fp16"),
        (OperatorCall("aten::linear", ((4, 128, 64), (32, 64), (32,)), ("float",) * 3), "mm:1,512,32,64"),
        (
            OperatorCall(
                "aten::cudnn_convolution",
                ((16, 64, 56, 56), (128, 64, 3, 3)),
                ("float", "float"),
                ("", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"),
            ),
            "conv2d:16,56,56,64,128,3,2,1",
        ),
        (
            OperatorCall(
                "aten::convolution",
                ((16, 64, 56, 56), (128, 64, 3, 3)),
                ("float", "float"),
                ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]"),
            ),
            "conv2d:16,56,56,64,128,3,2,1",
        ),
        (
            OperatorCall("aten::convolution_backward", ((1, 1, 5, 5), (1, 1, 3, 3)), ("float",) * 2, ("[1, 1]",) * 3),
            None,
        ),
        (OperatorCall("aten::mm", ((128, 64), (64, 32)), ("double",) * 2), None),
        (OperatorCall("aten::mm"), None),
        (OperatorCall("aten::mm", ((0, 64), (64, 32)), BF16), None),
        (OperatorCall("aten::add", ((128, 64), (128, 64)), BF16), None),
    ],
)
def test_an_operator_is_offered_where_its_shape_is_known(call: OperatorCall, notation: str | None) -> None:
    operator = operator_of(call)
    assert (None if operator is None else operator.notation) == notation


def steps(family: Family, share: float, *, moved: float = 0.0, gaps: GapEnergy = NO_GAPS) -> tuple[NextStep, ...]:
    energy = FamilyEnergy(
        1000, 1.0, 500.0, (490.0, 510.0), 500.0, share, family.name, family.kind, family.full_name, None
    )
    return next_steps([family], [energy], [], gaps, 2.0, "NVIDIA H200", [moved])


def test_a_small_item_has_no_step() -> None:
    family = Family("triton_x", "kernel", "triton_x", None)
    assert steps(family, 0.5)
    assert not steps(family, 0.01)


def test_a_name_alone_does_not_make_a_kernel_memory_bound() -> None:
    name = "vectorized_elementwise_kernel"
    assert not steps(Family(name, "kernel", name, None), 0.5)
    small = OperatorCall("aten::add", ((1024, 1024),) * 2, BF16)
    assert not steps(Family(name, "kernel", name, small), 0.5)
    large = OperatorCall("aten::add", ((2**15, 2**15), (2**15, 2**15)), BF16)
    (step,) = steps(Family(name, "kernel", name, large), 0.5)
    assert "a lower clock costs no time" in step.step


def test_copies_on_the_board_are_memory_bound_where_they_reach_its_bandwidth() -> None:
    family = Family("Memcpy DtoD", "copy", "Memcpy DtoD (Device -> Device)", None)
    assert "memory-bound" in steps(family, 0.2, moved=1.9e12)[0].step
    assert not steps(family, 0.2, moved=0.5e12)


def test_many_short_gaps_are_launches_that_graphs_save() -> None:
    family = Family("k", "kernel", "k", None)
    gaps = GapEnergy(20_000, 0.6, 60.0, (55.0, 65.0), 100.0, 0.1, 19_000, 0.5, 50.0, None)
    (step,) = steps(family, 0.5, gaps=gaps)
    assert "graphs" in step.step
    assert "19,000 gaps" in step.why


def test_a_family_in_a_group_counts_by_its_part_of_the_group() -> None:
    family, other = (Family(name, "kernel", name, None) for name in ("triton_a", "triton_b"))
    energies = [
        FamilyEnergy(10, time_s, float("nan"), None, float("nan"), float("nan"), each.name, "kernel", each.name, 1)
        for each, time_s in ((family, 0.9), (other, 0.1))
    ]
    group = GroupEnergy(20, 1.0, 500.0, (490.0, 510.0), 500.0, 0.5, 1, ("triton_a", "triton_b"), False)
    (step,) = next_steps([family, other], energies, [group], NO_GAPS, 2.0, "NVIDIA H200", [0.0, 0.0])
    assert (step.about, step.share) == ("triton_a", pytest.approx(0.45))
