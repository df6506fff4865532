/* What the stand-ins for drivers' libraries share: boards that are not there, in a file that every process maps.
 *
 * The boards lie in `boards.bin` beside the library, laid out as below and in boards.py; a file lock orders the calls of
 * all processes. A library shows the boards of its VENDOR. Rights: root's, unless STAND_IN_RIGHTS says 1 (has them) or 0
 * (has not).
 *
 * Physics: the clock is the idle one without work, else the lock, the application clock or the highest, lowered until
 * idle + load (f/f_max)^3 is within the power limit; it gets there settle_us after it was asked for.
 */
#pragma once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NVIDIA, AMD };
enum { BOARDS = 8, FAULTS = 16, CALLS = 16384, KEPT = 1024, FUNCTION = 64 };
enum { IDLE = 0x1, APPLICATION = 0x2, POWER_CAP = 0x4 };

struct board {
    char name[64], uuid[64];
    int64_t major, minor, cores, mig;
    int64_t graphics_min, graphics_max, graphics_step, memory[4], memories;
    int64_t limit_min, limit_max, limit_default, clamp;        /* mW; clamp 0: limits are taken as they are */
    int64_t has_locks, has_memory_locks, has_application_clocks, has_limit, has_buffer, holds_when_idle, obeys;
    int64_t idle_mhz, idle_mw, load_mw, settle_us;
    int64_t vendor;
    int64_t profiles, conflicts;                               /* masks of the first 64 workload power profiles */
    /* settings */
    int64_t requested, limit, application[2], lock[2], memory_lock[2], persistence, level;
    int64_t lost, busy_until_ns;
    /* motion */
    int64_t from_mhz, to_mhz, moved_ns, last_ns, energy_uj, told, at_ns[KEPT], power_mw[KEPT];
};
struct fault { char function[FUNCTION]; int64_t board, code, delay_us, left; };
struct call { char function[FUNCTION]; int64_t ns, pid, board, a, b, returned; };
struct state {
    int64_t count, calls;
    struct board boards[BOARDS];
    struct fault faults[FAULTS];
    struct call log[CALLS];
};

static struct state *state;
static int file = -1;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((unused)) static int64_t wall_lead_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec - now_ns();
}

static char said_at_first; /* the helper clears its environment later */
__attribute__((constructor)) static void remember_rights(void) {
    const char *said = getenv("STAND_IN_RIGHTS");
    said_at_first = said ? said[0] : 0;
}
static int may_set(void) {
    const char *now = getenv("STAND_IN_RIGHTS");
    char said = now ? now[0] : said_at_first;
    return said ? said == '1' : geteuid() == 0;
}

/* ---- physics --------------------------------------------------------------------------------------------------- */

static int64_t power(const struct board *b, int64_t mhz, int busy) {
    double share = (double)mhz / b->graphics_max;
    return b->idle_mw + (busy ? (int64_t)(b->load_mw * share * share * share) : 0);
}

static int64_t observed(const struct board *b, int64_t now) {
    return now - b->moved_ns >= b->settle_us * 1000 ? b->to_mhz : b->from_mhz;
}

static int64_t target(const struct board *b, int busy, int *reasons) {
    int64_t mhz = b->has_application_clocks ? b->application[1] : b->graphics_max;
    *reasons = 0;
    if (b->lock[1] && b->obeys) {
        if (mhz > b->lock[1]) mhz = b->lock[1];
        if (mhz < b->lock[0]) mhz = b->lock[0];
        *reasons |= APPLICATION;
    }
    if (!busy) {
        *reasons |= IDLE;
        return b->lock[1] && b->obeys && b->holds_when_idle ? b->lock[0] : b->idle_mhz;
    }
    while (mhz > b->graphics_min && power(b, mhz, 1) > b->limit) {
        mhz -= b->graphics_step;
        *reasons |= POWER_CAP;
    }
    return mhz;
}

static void move(struct board *b, int64_t now) {
    int reasons, busy = now < b->busy_until_ns;
    int64_t mhz = target(b, busy, &reasons), mw;
    if (mhz != b->to_mhz) {
        b->from_mhz = observed(b, now);
        b->to_mhz = mhz;
        b->moved_ns = now;
    }
    mw = power(b, observed(b, now), busy);
    if (b->last_ns) b->energy_uj += mw * ((now - b->last_ns) / 1000) / 1000;
    b->last_ns = now;
    if (!b->told || b->power_mw[(b->told - 1) % KEPT] != mw) {
        b->at_ns[b->told % KEPT] = now;
        b->power_mw[b->told % KEPT] = mw;
        b->told++;
    }
}

__attribute__((unused)) static int64_t mean_power(const struct board *b, int64_t from, int64_t to) {
    double energy = 0;
    int64_t until = to;
    for (int64_t i = b->told - 1; i >= 0 && i > b->told - KEPT; i--) {
        int64_t since = b->at_ns[i % KEPT] > from ? b->at_ns[i % KEPT] : from;
        if (until > since) energy += (double)b->power_mw[i % KEPT] * (until - since);
        if (since < until) until = since;
        if (until <= from) return (int64_t)(energy / (to - from));
    }
    return b->idle_mw;
}

/* ---- every call ------------------------------------------------------------------------------------------------ */

static int open_state(void) {
    Dl_info about;
    char path[4096];
    if (state) return OK;
    if (!dladdr((void *)open_state, &about)) return NO_LIBRARY;
    snprintf(path, sizeof path - 16, "%s", about.dli_fname);
    char *name = strrchr(path, '/');
    strcpy(name ? name + 1 : path, "boards.bin");
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return NO_DRIVER;
    state = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (state == MAP_FAILED) { state = 0; return NO_DRIVER; }
    return OK;
}

static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;    /* a file lock is one for all threads of a process */
static void hold(void) { pthread_mutex_lock(&threads); while (flock(file, LOCK_EX)) {} }
static void release(void) { flock(file, LOCK_UN); pthread_mutex_unlock(&threads); }

/* The place of the vendor's board of that index among all; -1 where there is none. */
static int place_of(int index) {
    for (int at = 0; at < state->count; at++)
        if (state->boards[at].vendor == VENDOR && index-- == 0) return at;
    return -1;
}
static int count_of_vendor(void) { int count = 0; while (place_of(count) >= 0) count++; return count; }

static int index_of(const void *handle) { return (int)((intptr_t)handle - 1); }

/* Begin a call: faults, delays, a lost board. The lock is held where it returns OK. */
static int begin(const char *function, void *handle, struct board **board) {
    int at = index_of(handle), code = OK;
    int64_t delay = 0;
    if (!state) return UNINITIALISED;
    if (at < 0 || at >= state->count || state->boards[at].vendor != VENDOR) return INVALID;
    hold();
    for (int i = 0; i < FAULTS; i++) {
        struct fault *f = &state->faults[i];
        if (!f->left || (f->board >= 0 && f->board != at) || strcmp(f->function, function)) continue;
        if (f->left > 0) f->left--;
        code = (int)f->code;
        delay = f->delay_us;
    }
    if (state->boards[at].lost) code = LOST;
    if (delay) { release(); usleep((useconds_t)delay); hold(); }
    if (code) { release(); return code; }
    *board = &state->boards[at];
    move(*board, now_ns());
    return OK;
}

static int end(struct board *b) { move(b, now_ns()); release(); return OK; }
static int refuse(int code) { release(); return code; }

/* Setters are logged whatever comes of them: what reached the driver. */
static void note(const char *function, void *handle, int64_t a, int64_t b, int returned) {
    hold();
    struct call *c = &state->log[state->calls++ % CALLS];
    snprintf(c->function, FUNCTION, "%s", function);
    c->ns = now_ns(); c->pid = getpid(); c->board = index_of(handle); c->a = a; c->b = b; c->returned = returned;
    release();
}

#define BEGIN struct board *b; int code = begin(__func__, handle, &b); if (code) return code
#define SETTER(a, c, body) \
    struct board *b; int code = begin(__func__, handle, &b); \
    if (!code) { code = may_set() ? body : NO_PERMISSION; if (code) refuse(code); else end(b); } \
    note(__func__, handle, a, c, code); return code
