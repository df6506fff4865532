"""Comparing outputs with their reference on the device: tens of microseconds where a copy to the host takes as long as
measuring a configuration. `difference_TYPE` counts what lies beyond the tolerance; `backend.difference` is the same on
the host."""

from __future__ import annotations

from typing import Final

# NumPy type -> C++ type; complex arrays are compared as pairs of floats, flags as bytes.
TYPES: Final = {
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}

# Of green contexts, too: which SMs run what is launched. The loop keeps a block there while others go elsewhere.
_SEEN: Final = """
#ifndef SM_NUMBER
#define SM_NUMBER(into) asm volatile("mov.u32 %0, %%smid;" : "=r"(into))
#endif
extern "C" __global__ void seen_sms(unsigned int *seen, unsigned int most) {
    unsigned int number = most;
    SM_NUMBER(number);
    volatile unsigned int turns = 0;
    while (turns < 64) turns = turns + 1;
    if (number < most) seen[number] = 1;
}
"""

# No header is included: NVRTC may have none.
_TEMPLATE: Final = """
struct Half {
    unsigned short bits;
    __device__ operator double() const {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
};
struct BFloat16 {
    unsigned short bits;
    __device__ operator double() const { return (double)__uint_as_float((unsigned)bits << 16); }
};

// result: how many differ, the first of them, the largest difference (its bits: they order as non-negative doubles do)
template <typename T>
__device__ void compare(const T *output, const T *expected, unsigned long long size, double rtol, double atol,
                        unsigned long long *result) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    double worst = 0.0;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < size; at += step) {
        const double a = (double)output[at], b = (double)expected[at];
        const double apart = fabs(a - b);
        if (isfinite(apart)) worst = fmax(worst, apart);
        if ((isfinite(apart) && apart <= atol + rtol * fabs(b)) || a == b || (isnan(a) && isnan(b))) continue;
        atomicAdd(result, 1ull);
        atomicMin(result + 1, at);
        if (!isfinite(apart)) worst = __longlong_as_double(0x7ff0000000000000ll);  // infinity
    }
    if (worst > 0.0) atomicMax(result + 2, (unsigned long long)__double_as_longlong(worst));
}
"""

SOURCE: Final = (
    _TEMPLATE
    + _SEEN
    + "".join(
        f"""
extern "C" __global__ void difference_{name}(const {kind} *output, const {kind} *expected, unsigned long long size,
                                             double rtol, double atol, unsigned long long *result) {{
    compare(output, expected, size, rtol, atol, result);
}}
"""
        for name, kind in TYPES.items()
    )
)


def compared_type(name: str) -> tuple[str, int]:
    """The type by which an array of that NumPy type is compared, and how many of it an element has."""
    if name.startswith("complex"):
        return f"float{int(name.removeprefix('complex')) // 2}", 2
    return ("uint8" if name == "bool" else name), 1
