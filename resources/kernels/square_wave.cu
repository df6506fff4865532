// Load for the characterisation of a board's power sensors: fused multiply-adds in registers, no memory traffic. A block
// keeps a whole multiprocessor busy, so the grid says how many of them work, and with it how much the board draws.
// A launch takes about a millisecond, whatever the grid: the load can end that soon.
#ifndef rounds
#define rounds 48000
#endif

extern "C" __global__ void __launch_bounds__(1024)
square_wave(float *out, const float *start) {
    const float first = start[0], factor = 0.999f + 1e-9f * threadIdx.x;
    float a = first, b = first + 1.0f, c = first + 2.0f, d = first + 3.0f;
    for (int round = 0; round < rounds; round++) {
        a = fmaf(a, factor, 0.5f);
        b = fmaf(b, factor, 0.25f);
        c = fmaf(c, factor, 0.125f);
        d = fmaf(d, factor, 0.0625f);
    }
    if (a + b + c + d == -1.0f) {  // never, but the compiler cannot know
        out[0] = a;
    }
}
