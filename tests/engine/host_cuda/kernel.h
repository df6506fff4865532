// What a kernel's source needs to be compiled for the host: CUDA's words, and a way in for the stand-in's driver.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __constant__
#define __launch_bounds__(...)
#define asm(...)  // of the comparer's half precision: its host's result is of no use

using std::fabs;
using std::fmax;
using std::isfinite;
using std::isnan;

struct Three { unsigned x, y, z; };
static Three gridDim, blockDim, blockIdx, threadIdx;
static unsigned sms_of_part;  // of the part that the launch is for
#define SM_NUMBER(into) into = blockIdx.x % sms_of_part

typedef unsigned long long Word;
static inline Word atomicAdd(Word *at, Word by) { Word was = *at; *at += by; return was; }
static inline Word atomicMin(Word *at, Word other) { Word was = *at; if (other < was) *at = other; return was; }
static inline Word atomicMax(Word *at, Word other) { Word was = *at; if (other > was) *at = other; return was; }
static inline float __uint_as_float(unsigned bits) { float value; memcpy(&value, &bits, 4); return value; }
static inline double __longlong_as_double(long long bits) { double value; memcpy(&value, &bits, 8); return value; }
static inline long long __double_as_longlong(double value) { long long bits; memcpy(&bits, &value, 8); return bits; }

template <class... A, size_t... I>
static void with_values(void (*kernel)(A...), void **values, std::index_sequence<I...>) {
    (void)values;
    kernel(*static_cast<A *>(values[I])...);
}

template <class... A> static void every_thread(void (*kernel)(A...), void **values, const unsigned *d) {
    gridDim = {d[0], d[1], d[2]};
    blockDim = {d[3], d[4], d[5]};
    sms_of_part = d[6];
    for (unsigned block = 0; block < d[0] * d[1] * d[2]; block++)
        for (unsigned thread = 0; thread < d[3] * d[4] * d[5]; thread++) {
            blockIdx = {block % d[0], block / d[0] % d[1], block / d[0] / d[1]};
            threadIdx = {thread % d[3], thread / d[3] % d[4], thread / d[3] / d[4]};
            with_values(kernel, values, std::index_sequence_for<A...>{});
        }
}

template <class... A> static unsigned sizes_of(void (*)(A...), size_t *sizes) {
    unsigned count = 0;
    ((sizes[count++] = sizeof(A)), ...);
    return count;
}

#define WAY_IN(kernel)                                                                                             \
    extern "C" void kernel##__call(void **values, const unsigned *d) { every_thread(kernel, values, d); }          \
    extern "C" unsigned kernel##__sizes(size_t *sizes) { return sizes_of(kernel, sizes); }
