"""Names of kernels as a table shows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.profile.kernel_names import readable_name


@pytest.mark.parametrize(
    ("full", "short"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
            "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
            "vectorized_elementwise_kernel<CUDAFunctor_add<BFloat16>>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
            "GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>"
            " >(int, std::array<char*, 2ul>)",
            "vectorized_elementwise_kernel<GeluCUDAKernelImpl<BFloat16>>",
        ),
        (
            "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, 10, false>(float*)",
            "softmax_warp_forward<float>",
        ),
        ("void cutlass::Kernel2<cutlass_80_s161616gemm_bf16>(Params)", "Kernel2<cutlass_80_s161616gemm_bf16>"),
        ("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsEEvT_", "flash_fwd_kernel"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
    ],
)
def test_names_are_short_enough_to_read(full: str, short: str) -> None:
    assert readable_name(full) == short


@given(st.text(alphabet="ab:<>(){}[],-_Z1 ", max_size=60))
def test_whatever_the_name_there_is_one(full: str) -> None:
    assert readable_name(full) or not full.strip()
