// C = A B by tiles: what mm.cu and conv2d.cu have in common, in FP32 (cores.cuh). A has ROWS x DEPTH numbers,
// B DEPTH x COLUMNS; a Problem says where they lie. Products of the same sizes may follow each other (PRODUCTS of them).
//
// A block computes a tile of block_m x block_n numbers in steps of block_k along the depth. With slices_k above 1 as many
// sets of threads share the tile, each with its part of every step, and are summed at the end: small tiles keep large
// shares of a thread, which read less shared memory for each multiply-add.
//
// Stripes of A and B go through shared memory in `stages` buffers: by cp.async where copy_async is set (8.0 on), else
// through registers. A pad of 16 bytes after each row spreads them over the banks where that helps.
//
// All steps of all tiles form one line, cut into equal parts, one for each block: as many as tiles (each block a tile),
// split_k times as many (split-K), or stream_k for each multiprocessor (stream-K: a block may begin and end within a
// tile). A tile that several blocks share is summed by the last of them to arrive, in the order of the depth, so that the
// result does not depend on which that is. min_blocks is how many blocks of a multiprocessor the compiler leaves
// registers for.

typedef float Number;
#define SLICE (block_m * block_n / (thread_m * thread_n))
#define THREADS (SLICE * slices_k)

constexpr int WIDEST = 16 / sizeof(Number);  // numbers in 16 bytes
constexpr int SUMS = block_m * block_n / SLICE;  // of a thread
constexpr int SLICE_K = block_k / slices_k;
constexpr int TILES_M = (ROWS + block_m - 1) / block_m, TILES_N = (COLUMNS + block_n - 1) / block_n;
constexpr int TILES = TILES_M * TILES_N * PRODUCTS;
constexpr int STEPS = (DEPTH + block_k - 1) / block_k;
constexpr int A_PITCH = block_k + WIDEST;
constexpr int B_PITCH = block_n;  // read along its rows
constexpr int A_STRIPE = block_m * A_PITCH, B_STRIPE = block_k * B_PITCH;  // numbers in shared memory
constexpr int A_LOADS = block_m * block_k / (A_VECTOR * THREADS), B_LOADS = block_k * block_n / (B_VECTOR * THREADS);
constexpr bool WHOLE_TILES = split_k == 1 && stream_k == 0;  // no block shares a tile with another

static_assert(SLICE_K * slices_k == block_k && SUMS % 4 == 0, "whole slices");
static_assert(A_LOADS * A_VECTOR * THREADS == block_m * block_k, "every thread reads as much of A");
static_assert(THREADS % (block_k / A_VECTOR) == 0, "every thread reads one column of A's stripe");
static_assert(B_LOADS * B_VECTOR * THREADS == block_k * block_n, "every thread reads as much of B");

// Numbers that are moved and never looked at: halves by the word, which saves taking them apart.
template <int byte> struct Bits { typedef unsigned Word; };
template <> struct Bits<2> { typedef unsigned short Word; };
template <int width> struct __align__(width * sizeof(Number)) Vector {
    typedef typename Bits<width * sizeof(Number)>::Word Word;
    Word word[width * sizeof(Number) / sizeof(Word)];
};
struct __align__(16) Four { float lane[4]; };
typedef float Sums[SUMS];

// Four numbers at once, past the L1 cache: what another block has written is seen.
__device__ __forceinline__ void store(float *to, const float *from) {
#ifdef __CUDA_ARCH__
    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]) : "memory");
#else
    for (int lane = 0; lane < 4; lane++) to[lane] = from[lane];
#endif
}
__device__ __forceinline__ Four load(const float *from) {
    Four v;
#ifdef __CUDA_ARCH__
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.lane[0]), "=f"(v.lane[1]), "=f"(v.lane[2]), "=f"(v.lane[3]) : "l"(from) : "memory");
#else
    for (int lane = 0; lane < 4; lane++) v.lane[lane] = from[lane];
#endif
    return v;
}

// --- copies to shared memory that a thread need not wait for

#ifndef COPY_ASYNC
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int bytes> __device__ __forceinline__ void begin_copy(Number *target, const Number *source, bool inside) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(target);
    const int wanted = inside ? bytes : 0;  // the rest is zeros
    if constexpr (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(source), "r"(wanted) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(source), "n"(bytes), "r"(wanted) : "memory");
}
#define COPY_ASYNC(bytes, target, source, inside) begin_copy<bytes>(target, source, inside)
#define COPIES_END_GROUP() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPIES_AWAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#else  // an older board: copied at once
#define COPY_ASYNC(bytes, target, source, inside) put<bytes / sizeof(Number)>(target, source, inside)
template <int width> __device__ __forceinline__ void put(Number *target, const Number *source, bool inside) {
    *reinterpret_cast<Vector<width> *>(target) = inside ? *reinterpret_cast<const Vector<width> *>(source) : Vector<width>{};
}
#define COPIES_END_GROUP()
#define COPIES_AWAIT(groups)
#endif
#endif

// --- a block's tile

struct Place { int product, row, column; };  // of a tile's upper left number

// Tiles in bands of group_m rows of them: the blocks that run at once share stripes of both A and B in the L2 cache.
__device__ __forceinline__ Place place_of(int tile) {
    const int product = tile / (TILES_M * TILES_N), within = tile % (TILES_M * TILES_N);
    const int band = within / (group_m * TILES_N), first = band * group_m;
    const int height = TILES_M - first < group_m ? TILES_M - first : group_m;
    const int in_band = within - first * TILES_N;
    return {product, (first + in_band % height) * block_m, in_band / height * block_n};
}

// What a thread reads of A and B in every step: vectors of A_VECTOR numbers along the depth, of B_VECTOR along columns.
template <class Problem> struct Reader {
    Problem problem;
    Vector<A_VECTOR> a_kept[copy_async ? 1 : A_LOADS];
    Vector<B_VECTOR> b_kept[copy_async ? 1 : B_LOADS];

    // the place of a thread's vector i in a stripe: in A always the same column, in B mostly
    static constexpr int A_WIDE = block_k / A_VECTOR, B_WIDE = block_n / B_VECTOR;
    __device__ __forceinline__ static int a_row(int i) { return (int)threadIdx.x / A_WIDE + i * (THREADS / A_WIDE); }
    __device__ __forceinline__ static int a_column() { return (int)threadIdx.x % A_WIDE * A_VECTOR; }
    __device__ __forceinline__ static int b_row(int i) {
        if constexpr (THREADS % B_WIDE == 0) return (int)threadIdx.x / B_WIDE + i * (THREADS / B_WIDE);
        else return ((int)threadIdx.x + i * THREADS) / B_WIDE;
    }
    __device__ __forceinline__ static int b_column(int i) {
        if constexpr (THREADS % B_WIDE == 0) return (int)threadIdx.x % B_WIDE * B_VECTOR;
        else return ((int)threadIdx.x + i * THREADS) % B_WIDE * B_VECTOR;
    }

    __device__ __forceinline__ void begin(const Place &place) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) problem.begin_row(i, place.product, place.row + a_row(i));
        problem.begin_columns(place.product, place.column);
    }
    // one step's stripes on their way to shared memory
    __device__ __forceinline__ void copy(int step, Number *stage) {
        problem.begin_step(step * block_k + a_column(), step * block_k + b_row(0));
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            bool inside;
            const Number *from = problem.a(i, inside);
            COPY_ASYNC(A_VECTOR * sizeof(Number), stage + a_row(i) * A_PITCH + a_column(), from, inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) {
            bool inside;
            const Number *from = problem.b(b_row(i) - b_row(0), b_column(i), inside);
            COPY_ASYNC(B_VECTOR * sizeof(Number), stage + A_STRIPE + b_row(i) * B_PITCH + b_column(i), from, inside);
        }
    }
    // the same by way of registers
    __device__ __forceinline__ void load(int step) {
        problem.begin_step(step * block_k + a_column(), step * block_k + b_row(0));
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            bool inside;
            const Number *from = problem.a(i, inside);
            a_kept[i] = inside ? *reinterpret_cast<const Vector<A_VECTOR> *>(from) : Vector<A_VECTOR>{};
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) {
            bool inside;
            const Number *from = problem.b(b_row(i) - b_row(0), b_column(i), inside);
            b_kept[i] = inside ? *reinterpret_cast<const Vector<B_VECTOR> *>(from) : Vector<B_VECTOR>{};
        }
    }
    __device__ __forceinline__ void store(Number *stage) const {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            *reinterpret_cast<Vector<A_VECTOR> *>(stage + a_row(i) * A_PITCH + a_column()) = a_kept[i];
#pragma unroll
        for (int i = 0; i < B_LOADS; i++)
            *reinterpret_cast<Vector<B_VECTOR> *>(stage + A_STRIPE + b_row(i) * B_PITCH + b_column(i)) = b_kept[i];
    }
};

__device__ __forceinline__ bool in_first_slice() { return slices_k == 1 || threadIdx.x < SLICE; }

#include "cores.cuh"

// All groups of a stage, one after the other.
__device__ __forceinline__ void multiply(const Number *stage, Sums &sums) {
    Multiplier by;
    by.read(stage, 0);
#pragma unroll
    for (int group = 0; group < Multiplier::GROUPS; group++)
        by.multiply(stage, group, sums, [&] {
            if (group + 1 < Multiplier::GROUPS) by.read(stage, group + 1);
        });
}

// The steps from `first` to before `last` of a tile. With cp.async the first group of a step is read while the last one
// of the step before is multiplied, so that neither the barrier between them nor shared memory holds the units up.
template <class Problem>
__device__ __forceinline__ void accumulate(Reader<Problem> &reader, Number *shared, int first, int last, Sums &sums) {
    [[maybe_unused]] constexpr int STAGE = A_STRIPE + B_STRIPE;
    __syncthreads();  // of the tile before nothing is read any more
    if constexpr (copy_async) {
#pragma unroll
        for (int ahead = 0; ahead < stages - 1; ahead++) {
            if (first + ahead < last) reader.copy(first + ahead, shared + ahead * STAGE);
            COPIES_END_GROUP();
        }
        Multiplier by;
        COPIES_AWAIT(stages - 2);
        __syncthreads();
        by.read(shared, 0);
        int now = 0, next = stages - 1;  // buffers
        for (int step = first; step < last; step++) {
            const int after = now + 1 == stages ? 0 : now + 1;
            // into the buffer of the step before, which nobody reads since the last barrier
            if (step + stages - 1 < last) reader.copy(step + stages - 1, shared + next * STAGE);
            COPIES_END_GROUP();
#pragma unroll
            for (int group = 0; group < Multiplier::GROUPS; group++)
                by.multiply(shared + now * STAGE, group, sums, [&] {
                    if (group + 1 < Multiplier::GROUPS) {
                        by.read(shared + now * STAGE, group + 1);
                    } else {
                        COPIES_AWAIT(stages - 2);
                        __syncthreads();
                        by.read(shared + after * STAGE, 0);  // after the last step whatever lies there, unused
                    }
                });
            now = after;
            next = next + 1 == stages ? 0 : next + 1;
        }
    } else if constexpr (stages == 2) {
        reader.load(first);
        reader.store(shared);
        __syncthreads();
        for (int step = first; step < last; step++) {
            Number *now = shared + (step - first) % 2 * STAGE, *next = shared + (step - first + 1) % 2 * STAGE;
            if (step + 1 < last) reader.load(step + 1);
            multiply(now, sums);
            if (step + 1 < last) reader.store(next);
            __syncthreads();
        }
    } else {
        reader.load(first);
        for (int step = first; step < last; step++) {
            reader.store(shared);
            __syncthreads();
            if (step + 1 < last) reader.load(step + 1);
            multiply(shared, sums);
            __syncthreads();
        }
    }
}

// The sums of all slices in the first one, in their order.
__device__ __forceinline__ void combine(float *shared, Sums &sums) {
    Four *kept = reinterpret_cast<Four *>(shared) + threadIdx.x % SLICE;
#pragma unroll
    for (int slice = 1; slice < slices_k; slice++) {
        __syncthreads();
        if (threadIdx.x / SLICE == slice) {
#pragma unroll
            for (int at = 0; at < SUMS; at += 4)
                kept[at / 4 * SLICE] = {sums[at], sums[at + 1], sums[at + 2], sums[at + 3]};
        }
        __syncthreads();
        if (threadIdx.x < SLICE) {
#pragma unroll
            for (int at = 0; at < SUMS; at++) sums[at] += kept[at / 4 * SLICE].lane[at % 4];
        }
    }
}

// --- the parts of the line of steps

constexpr int STREAM = TILES * STEPS;  // all of it

// Equal parts, the first ones a step longer where there is a rest.
__device__ __forceinline__ int begin_of_part(int part, int steps, int parts) {
    const int rest = steps % parts;
    return steps / parts * part + (part < rest ? part : rest);
}
__device__ __forceinline__ int begin_of(int block) {
    if constexpr (stream_k) return begin_of_part(block, STREAM, gridDim.x);
    else return block / split_k * STEPS + begin_of_part(block % split_k, STEPS, split_k);
}
// The first block with steps of a tile.
__device__ __forceinline__ int first_block_of(int tile) {
    if constexpr (stream_k == 0) return tile * split_k;
    const int at = tile * STEPS, least = STREAM / (int)gridDim.x, longer = STREAM % (int)gridDim.x * (least + 1);
    return at < longer ? at / (least + 1) : STREAM % (int)gridDim.x + (at - longer) / least;
}

// A part of a tile is kept in the workspace, four numbers of every thread beside each other.
__device__ __forceinline__ float *slot_of(float *workspace, int block, int tile) {
    const int slot = stream_k ? 2 * block + (begin_of(block) < tile * STEPS) : block;
    return workspace + (size_t)slot * (block_m * block_n) + threadIdx.x % SLICE * 4;
}

// Keep this block's part of a tile; true, with the sum of all, where all others are there.
__device__ __forceinline__ bool gather(float *workspace, unsigned *arrived, unsigned &seen, int tile, Sums &sums) {
    float *kept = slot_of(workspace, blockIdx.x, tile);
#pragma unroll
    for (int at = 0; at < SUMS; at += 4)
        if (in_first_slice()) store(kept + at * SLICE, sums + at);
    __threadfence();
    __syncthreads();
    const int first = first_block_of(tile);
    int last = first;
    while (begin_of(last + 1) < (tile + 1) * STEPS) last++;
    if (threadIdx.x == 0) seen = atomicAdd(arrived + tile, 1u);
    __syncthreads();
    if (seen != (unsigned)(last - first)) return false;
    __threadfence();
    if (threadIdx.x == 0) arrived[tile] = 0;  // for the next launch
    if (!in_first_slice()) return false;
#pragma unroll
    for (int at = 0; at < SUMS; at++) sums[at] = 0.0f;
#pragma unroll 1
    for (int block = first; block <= last; block++) {
        const float *part = slot_of(workspace, block, tile);
#pragma unroll
        for (int at = 0; at < SUMS; at += 4) {
            const Four four = load(part + at * SLICE);
#pragma unroll
            for (int lane = 0; lane < 4; lane++) sums[at + lane] += four.lane[lane];
        }
    }
    return true;
}

template <class Problem>
__device__ __forceinline__ void product(float *c, Reader<Problem> &reader, float *shared, float *workspace, unsigned *arrived) {
    if constexpr (WHOLE_TILES) {
        const Place place = place_of(blockIdx.x);
        Sums sums = {};
        reader.begin(place);
        accumulate(reader, reinterpret_cast<Number *>(shared), 0, STEPS, sums);
        combine(shared, sums);
        if (in_first_slice()) write(c, place, sums);
    } else {
        const int end = begin_of(blockIdx.x + 1);
        for (int at = begin_of(blockIdx.x); at < end;) {
            const int tile = at / STEPS, first = at % STEPS, last = STEPS - first < end - at ? STEPS : first + end - at;
            const Place place = place_of(tile);
            Sums sums = {};
            reader.begin(place);
            accumulate(reader, reinterpret_cast<Number *>(shared), first, last, sums);
            combine(shared, sums);
            const bool whole = last - first == STEPS;
            __syncthreads();  // shared memory is free for `seen`
            if (whole ? in_first_slice() : gather(workspace, arrived, *reinterpret_cast<unsigned *>(shared), tile, sums))
                write(c, place, sums);
            at += last - first;
        }
    }
}
