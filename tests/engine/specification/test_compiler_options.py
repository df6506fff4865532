"""Options of compilers in a specification: what is given to a compiler, and what never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.specification.check import check_options

USUAL = [
    *("-O3", "-march=native", "-fopenmp", "-ffast-math", "-std=c++17", "-Wall", "-DSIZE=4", "-lm", "-pthread", "-g"),
    *("-cl-fast-relaxed-math", "-cl-std=CL2.0", "-acc", "-gpu=cc90", "-arch=sm_90", "--use_fast_math", "-fPIC"),
]
NEVER = [
    *("-o", "-oout", "--output-file=x", "-c", "-S", "-E", "-MD", "-specs=mine", "--specs=mine", "-B/tmp", "-wrapper"),
    *("-fplugin=x.so", "-fpass-plugin=x.so", "-fuse-ld=/tmp/ld", "--ld-path=/tmp/ld", "-ccbin", "-run", "--run"),
    *("--options-file", "-optf", "-Xclang", "-save-temps", "@options", "other.c", "", "/etc/passwd"),
]


@pytest.mark.parametrize("option", USUAL)
def test_usual_options_are_given(option: str) -> None:
    check_options([option], "here")


@pytest.mark.parametrize("option", NEVER)
@pytest.mark.parametrize("before", [[], ["-O2"], ["-Xcompiler"], ["-I", "include"]], ids=str)
def test_what_names_files_or_programs_is_refused_wherever_it_stands(option: str, before: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        check_options([*before, option], "kernel.compiler_options")
    assert refused.value.where == "kernel.compiler_options"
    assert refused.value.remedy


def test_options_that_take_a_word_have_it() -> None:
    check_options(["-I", "include", "-D", "A=1", "-Xcompiler", "-fopenmp", "-x", "cu"], "here")


@given(st.lists(st.text(max_size=20), max_size=8))
def test_anything_is_accepted_or_refused_in_one_line(options: list[str]) -> None:
    refused = ""
    try:
        check_options(options, "here")
    except InputError as error:
        refused = str(error)
    assert "\n" not in refused
