// c = a + b for n floats, in OpenCL.
// Tunable: block_size_x (work-items of a group), items_per_thread, vector_width (floats per load and store: 1, 2, 4),
// grid_stride (0: the numbers of a group lie together; 1: those of a work-item lie a whole grid apart),
// loop_unroll_factor.
#ifndef n
#define n 4194304
#endif

#define STEPS (items_per_thread / vector_width)
#define JOINED(a, b) a##b
#define OF(type, width) JOINED(type, width)
#if vector_width == 1
#define VECTOR float
#else
#define VECTOR OF(float, vector_width)
#endif

__kernel __attribute__((reqd_work_group_size(block_size_x, 1, 1)))
void vector_add(__global VECTOR *c, __global const VECTOR *restrict a, __global const VECTOR *restrict b) {
#if grid_stride
    const size_t first = get_global_id(0), stride = get_global_size(0);
#else
    const size_t first = get_group_id(0) * block_size_x * STEPS + get_local_id(0), stride = block_size_x;
#endif
    __attribute__((opencl_unroll_hint(loop_unroll_factor)))
    for (int step = 0; step < STEPS; step++) {
        const size_t at = first + step * stride;
        if (at < n / vector_width) c[at] = a[at] + b[at];
    }
}
