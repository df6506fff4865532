// Runs a CUDA kernel on the CPU, one block after the other, so that tests see what it computes where there is no GPU.
// Every thread of a block is a fiber. A fiber runs until a barrier; barriers open when all living threads of the block
// (or of the warp) have come, and a block in which no thread can go on ends the program. `backwards` runs the threads in
// the opposite order: a result that depends on it lacks a barrier. Copies by cp.async (COPY_ASYNC) are made when they are
// awaited and not before, so that a kernel which does not wait computes with what was there.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __shared__ thread_local  // one for all fibers, which are all of one thread; `extern` may stand before it
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

using std::max;
using std::min;

struct Dim {
    unsigned x, y, z;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace cpu {
enum class State { ready, at_block, at_warp, done };
struct Copy {
    void *target;
    const void *source;
    size_t size;
    bool inside;
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    Dim at;
    State state = State::ready;
    unsigned long long exchanged = 0;  // a value that the warp's other threads may read
    std::deque<std::vector<Copy>> copies;  // group by group; the last group is still open
};
constexpr size_t stack_byte = 64 * 1024;
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static size_t current;
static void (*body)();

inline void wait(State state) {
    const size_t self = current;
    fibers[self].state = state;
    swapcontext(&fibers[self].context, &scheduler);
    threadIdx = fibers[self].at;
}

inline void enter() {
    body();
    fibers[current].state = State::done;
}

// Opens a barrier where all living threads of [first, last) stand at it.
inline bool open(size_t first, size_t last, State barrier) {
    bool any = false;
    for (size_t i = first; i < last; i++) {
        if (fibers[i].state != barrier && fibers[i].state != State::done) return false;
        any |= fibers[i].state == barrier;
    }
    for (size_t i = first; i < last; i++)
        if (fibers[i].state == barrier) fibers[i].state = State::ready;
    return any;
}

inline void run_block(bool backwards) {
    const size_t threads = (size_t)blockDim.x * blockDim.y * blockDim.z;
    if (fibers.size() != threads) fibers = std::vector<Fiber>(threads);
    for (size_t i = 0; i < threads; i++) {
        Fiber &fiber = fibers[i];
        if (!fiber.stack) fiber.stack.reset(new char[stack_byte]);
        fiber.at = {unsigned(i % blockDim.x), unsigned(i / blockDim.x % blockDim.y),
                    unsigned(i / blockDim.x / blockDim.y)};
        fiber.state = State::ready;
        fiber.copies.assign(1, {});
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = stack_byte;
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, enter, 0);
    }
    for (;;) {
        bool ran = false, living = false;
        for (size_t step = 0; step < threads; step++) {
            const size_t i = backwards ? threads - 1 - step : step;
            if (fibers[i].state != State::ready) continue;
            current = i;
            threadIdx = fibers[i].at;
            swapcontext(&scheduler, &fibers[i].context);
            ran = true;
        }
        for (size_t first = 0; first < threads; first += 32)
            ran |= open(first, min(first + 32, threads), State::at_warp);
        ran |= open(0, threads, State::at_block);
        for (const Fiber &fiber : fibers) living |= fiber.state != State::done;
        if (!living) return;
        if (!ran) {
            fprintf(stderr, "a barrier that not every thread reaches\n");
            abort();
        }
    }
}

inline void run_grid(const unsigned *grid, const unsigned *block, void (*kernel)(), bool backwards) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    body = kernel;
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                run_block(backwards);
            }
}

inline void await_copies(size_t groups_left) {
    auto &copies = fibers[current].copies;
    for (; copies.size() > groups_left + 1; copies.pop_front())
        for (const Copy &copy : copies.front()) {
            if (copy.inside) memcpy(copy.target, copy.source, copy.size);
            else memset(copy.target, 0, copy.size);
        }
}
}  // namespace cpu

#define COPY_ASYNC(bytes, target, source, inside) \
    cpu::fibers[cpu::current].copies.back().push_back({target, source, bytes, inside})
#define COPIES_END_GROUP() cpu::fibers[cpu::current].copies.emplace_back()
#define COPIES_AWAIT(groups) cpu::await_copies(groups)

inline void __syncthreads() { cpu::wait(cpu::State::at_block); }
inline void __syncwarp() { cpu::wait(cpu::State::at_warp); }
inline void __threadfence() {}

template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned distance) {
    static_assert(sizeof(T) <= 8, "one register or two");
    const size_t self = cpu::current;
    memcpy(&cpu::fibers[self].exchanged, &value, sizeof(T));
    cpu::wait(cpu::State::at_warp);
    const size_t other = self + distance;
    if (self % 32 + distance < 32 && other < cpu::fibers.size())
        memcpy(&value, &cpu::fibers[other].exchanged, sizeof(T));
    cpu::wait(cpu::State::at_warp);
    return value;
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
    const size_t self = cpu::current;
    memcpy(&cpu::fibers[self].exchanged, &value, sizeof(T));
    cpu::wait(cpu::State::at_warp);
    memcpy(&value, &cpu::fibers[self ^ mask].exchanged, sizeof(T));
    cpu::wait(cpu::State::at_warp);
    return value;
}

// --- the tensor cores' words: matrices of 8 x 8 halves, spread over a warp as PTX has it (ldmatrix, mma.m16n8k16)

#define MATRICES
namespace cpu {
inline float of_half(unsigned short bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent ? std::ldexp(1.0f + fraction / 1024.0f, exponent - 15) : std::ldexp(fraction / 1024.0f, -14);
    return bits >> 15 ? -size : size;
}
inline float of_brain(unsigned short bits) {
    const unsigned whole = (unsigned)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return value;
}
// What a lane of this warp hands out, as long as all of them look.
template <typename T, typename Look>
void exchange(const T &mine, Look look) {
    const size_t first = current / 32 * 32;
    memcpy(&fibers[current].exchanged, &mine, sizeof(T));
    wait(State::at_warp);
    look([first](size_t lane) {
        T found;
        memcpy(&found, &fibers[first + lane].exchanged, sizeof(T));
        return found;
    });
    wait(State::at_warp);
}
}  // namespace cpu
template <bool transposed>
void read_matrices(unsigned (&to)[4], const unsigned short *from) {
    const size_t lane = cpu::current % 32;
    cpu::exchange(from, [&](auto row) {
        for (size_t matrix = 0; matrix < 4; matrix++) {
            unsigned halves[2];
            for (size_t at = 0; at < 2; at++) {
                const size_t pair = lane % 4 * 2 + at, other = lane / 4;
                halves[at] = transposed ? row(matrix * 8 + pair)[other] : row(matrix * 8 + other)[pair];
            }
            to[matrix] = halves[0] | halves[1] << 16;
        }
    });
}
#define HALF_VALUES
inline float half_value(unsigned short bits) { return cpu::of_half(bits); }
inline float brain_value(unsigned short bits) { return cpu::of_brain(bits); }
template <bool brain>
void multiply_matrices(float *sum, const unsigned (&a)[4], const unsigned *b) {
    const auto value = brain ? cpu::of_brain : cpu::of_half;
    const size_t lane = cpu::current % 32;
    float left[2][16], right[16][2];  // this lane's rows of a and columns of b
    for (size_t part = 0; part < 4; part++)
        cpu::exchange(a[part], [&](auto of) {
            for (size_t pair = 0; pair < 8; pair++)
                left[part % 2][part / 2 * 8 + pair] = value(of(lane / 4 * 4 + pair / 2) >> pair % 2 * 16 & 0xffff);
        });
    for (size_t part = 0; part < 2; part++)
        cpu::exchange(b[part], [&](auto of) {
            for (size_t column = 0; column < 2; column++)
                for (size_t pair = 0; pair < 8; pair++)
                    right[part * 8 + pair][column] =
                        value(of((lane % 4 * 2 + column) * 4 + pair / 2) >> pair % 2 * 16 & 0xffff);
        });
    for (size_t row = 0; row < 2; row++)
        for (size_t column = 0; column < 2; column++)
            for (size_t k = 0; k < 16; k++) sum[row * 2 + column] += left[row][k] * right[k][column];
}

template <typename T>
T atomicAdd(T *address, T value) {
    const T before = *address;
    *address = before + value;
    return before;
}
template <typename T>
T atomicExch(T *address, T value) {
    const T before = *address;
    *address = value;
    return before;
}
inline unsigned atomicInc(unsigned *address, unsigned most) {
    const unsigned before = *address;
    *address = before >= most ? 0 : before + 1;
    return before;
}
template <typename T>
T __ldg(const T *address) {
    return *address;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
