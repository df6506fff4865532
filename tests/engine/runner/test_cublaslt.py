"""cuBLASLt's algorithms: what is listed and offered, one of them by its word, its result, and what is refused.

The library is a stand-in that follows the manual on the host (`fake_vendor.cpp`), with algorithms of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from fixtures.host_vendor import HostDriver, expected, libraries, operands

from app.engine.runner.cuda import offers, vendor
from app.engine.runner.cuda.cublaslt import EPILOGUES, LISTED, Algorithm, Product
from app.engine.runner.cuda.offers import offered, row_of
from app.engine.runner.kernels.backend import DeviceFault
from app.engine.space.array_expressions import widened
from app.engine.specification.operator_shapes import LAYOUTS, Operator, parse_operator

__all__ = ["libraries"]  # a fixture
FIRST = "66.20.1.0.0.0.35.0.3"  # what the library takes by itself
SPLIT = "66.18.4.2.1.0.36.0.2"
PRODUCT = "mm:2,5,7,9:bf16"


@pytest.fixture(autouse=True)
def found(libraries: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library is there, in its newest release."""
    for module in (vendor, offers):
        monkeypatch.setattr(module, "cublaslt", lambda: libraries)
    monkeypatch.setattr(vendor, "cublas", lambda: libraries)
    libraries.set_release(ctypes.c_size_t(120901), 19)
    yield
    libraries.set_release(ctypes.c_size_t(120901), 19)


def computed(operator: Operator, algorithm: str) -> None:
    """Check its result, and that nothing of it is left."""
    driver = HostDriver()
    given = operands(operator, driver)
    before = driver.rooms
    kernel = vendor.VendorOperator(driver, operator, given, algorithm)  # type: ignore[arg-type]
    kernel.launch(1)
    kernel.deliver()
    result = np.empty_like(given["c"][1])
    driver.read(given["c"][0], result)
    np.testing.assert_allclose(widened(result), expected(operator, given), rtol=1e-2, atol=1e-3)
    assert kernel.library == f"cuBLASLt 12.9.1 {algorithm or FIRST}"
    kernel.unload()
    assert driver.rooms == before, "what it took is given back"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("epilogue", list(EPILOGUES))
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_each_layout_and_epilogue_is_computed_in_batches(layout: str, epilogue: str, precision: str) -> None:
    for shape in ("2,5,7,9", "1,3,8,4"):
        computed(parse_operator(":".join(filter(None, ("mm", shape, precision, layout, epilogue)))), SPLIT)


def test_without_a_word_it_is_what_the_library_takes_by_itself() -> None:
    computed(parse_operator("mm:1,5,7,9:bf16:nt:gelu"), "")


def test_the_list_begins_with_what_the_library_takes_and_has_each_once(libraries: ctypes.CDLL) -> None:
    with closing(Product(libraries, parse_operator(PRODUCT))) as product:
        words = [algorithm.word for algorithm in product.listed()]
    assert words == [FIRST, "66.18.1.0.0.0.35.0.3", "1.15.1.0.0.0.0.0.0"]
    assert len(words) < LISTED


def test_offered_are_those_that_differ_in_one_setting_as_far_as_the_library_allows(libraries: ctypes.CDLL) -> None:
    with closing(Product(libraries, parse_operator(PRODUCT))) as product:
        listed, every, few = product.listed(), product.offered(), product.offered(most=9)
        assert all(product.allows(algorithm) for algorithm in every)
    assert every[:3] == few[:3] == listed
    assert len(every) == len(set(every)) > 9 == len(few)
    apart = [min(sum(a != b for a, b in zip(other, one, strict=True)) for one in listed) for other in every[3:]]
    assert set(apart) == {1, 2}, "a split comes with the way in which its parts are added up"
    assert {algorithm.tile for algorithm in every if algorithm.id == 66} == {18, 20, 23}
    assert {algorithm.split_k for algorithm in every} == {1, 2, 3, 4, 6, 8, 12, 16}


def test_where_not_all_can_be_offered_each_setting_is_varied_and_tiles_are_the_nearest(libraries: ctypes.CDLL) -> None:
    """Tiles are hundreds: they had taken all the places, and what varies the others was often better."""
    with closing(Product(libraries, parse_operator(PRODUCT))) as product:
        listed, few = product.listed(), product.offered(most=18)
    pairs = [(one, other) for one in listed for other in few[len(listed) :]]
    apart = [[name for name in Algorithm._fields if getattr(one, name) != getattr(other, name)] for one, other in pairs]
    varied = {names[0] for names in apart if len(names) == 1}
    assert varied >= {"tile", "cluster", "swizzle", "stages"}
    square = Algorithm(66, 20)  # 128 x 128
    assert sorted((15, 18, 23, 31, 0), key=square.from_tile) == [31, 18, 23, 15, 0], "192 x 128, 64 x 128, then others"


def test_what_the_library_does_not_have_is_refused_and_no_other_taken(libraries: ctypes.CDLL) -> None:
    operator, driver = parse_operator("mm:1,5,7,9:bf16"), HostDriver()
    given = operands(operator, driver)
    libraries.set_release(ctypes.c_size_t(120003), 0)  # which has no clusters
    with closing(Product(libraries, operator)) as product:
        assert product.version == "cuBLASLt 12.0.3"
        assert [algorithm.id for algorithm in product.listed()] == [1]
        refused = (FIRST, "66.20.1.0.0.0.37.0.0", "67.20.1.0.0.0.35.0.0")
        assert not any(product.allows(Algorithm.of_word(word)) for word in refused)
        assert product.allows(Algorithm.of_word("66.20.1.0.0.0.35.0.0"))
    with pytest.raises(DeviceFault, match="cublasLtMatmulAlgoCheck failed with status 15"):
        vendor.VendorOperator(driver, operator, given, FIRST)  # type: ignore[arg-type]


def test_an_algorithm_that_needs_more_workspace_than_there_is_is_not_offered(libraries: ctypes.CDLL) -> None:
    with closing(Product(libraries, parse_operator(PRODUCT))) as product:
        assert product.allows(Algorithm(66, 20, split_k=16, reduction=2, stages=35))
        assert not product.allows(Algorithm(66, 20, split_k=17, reduction=2, stages=35))


def test_a_product_leaves_nothing_behind(libraries: ctypes.CDLL) -> None:
    before = libraries.alive()
    with closing(Product(libraries, parse_operator(PRODUCT))) as product:
        assert libraries.alive() > before
        product.offered()
    assert libraries.alive() == before


@pytest.mark.parametrize("word", ["66.20", "66.20.1.0.0.0.35.0.3.1", "a.b.c", "-", ""])
def test_a_word_has_nine_numbers(word: str) -> None:
    assert Algorithm.of_word(FIRST).word == FIRST
    with pytest.raises(ValueError):
        Algorithm.of_word(word)


def test_rows_say_tile_steps_and_split_as_those_of_other_makers_do() -> None:
    rows, why_not = offered(parse_operator(PRODUCT))
    assert why_not == ""
    assert rows[0] == {"maker": "library"}
    assert rows[1] == row_of(Algorithm.of_word(FIRST))
    assert rows[1]["algorithm"] == FIRST
    assert (rows[1]["block_m"], rows[1]["block_n"]) == (128, 128), "of 20, 128 x 128"
    assert {row["maker"] for row in rows[1:]} == {"cublaslt"}


def test_an_epilogue_that_the_library_does_not_have_is_one_line(libraries: ctypes.CDLL) -> None:
    rows, why_not = offered(parse_operator("mm:1,5,7,9:bf16:nt:silu"))
    assert rows == []
    assert why_not == "cuBLASLt has no epilogue 'silu'"


def test_what_is_kept_between_kernels_is_one_workspace_and_none_where_there_was_no_memory() -> None:
    operator, driver = parse_operator(PRODUCT), HostDriver()
    given, kept = operands(operator, driver), vendor.KeptOfLibraries(driver)  # type: ignore[arg-type]
    before, allocate = driver.rooms, driver.allocate

    def full(nbyte: int) -> int:
        raise DeviceFault("out of memory")

    driver.allocate = full  # type: ignore[method-assign]
    with pytest.raises(DeviceFault, match="out of memory"):
        vendor.VendorOperator(driver, operator, given, FIRST, kept)  # type: ignore[arg-type]
    driver.allocate = allocate  # type: ignore[method-assign]
    for algorithm in (FIRST, SPLIT):
        kernel = vendor.VendorOperator(driver, operator, given, algorithm, kept)  # type: ignore[arg-type]
        assert driver.rooms == before + 1, "a workspace for all of them"
        kernel.launch(1)
        address, like = given["c"]
        found = np.empty_like(like)
        driver.read(address, found)
        np.testing.assert_allclose(widened(found), expected(operator, given), rtol=1e-2, atol=1e-2)
        kernel.unload()
    kept.close()
    assert driver.rooms == before
