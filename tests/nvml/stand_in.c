/* A stand-in for libnvidia-ml.so.1: boards that are not there, in a file that every process maps.
 *
 * It has no symbol that the real library lacks, and the real semantics: a lock can be set and reset, never read. The
 * boards lie in `boards.bin` beside the library, laid out as below and in boards.py; a file lock orders the calls of
 * all processes. Rights: root's, unless STAND_IN_RIGHTS says 1 (has them) or 0 (has not).
 *
 * Physics: the clock is the idle one without work, else the lock, the application clock or the highest, lowered until
 * idle + load (f/f_max)^3 is within the power limit; it gets there settle_us after it was asked for.
 */
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

enum { OK, UNINITIALISED, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, SMALL = 7, NO_LIBRARY = 12, LOST = 15 };
enum { GRAPHICS, SM, MEMORY, VIDEO };
enum { BOARDS = 8, FAULTS = 16, CALLS = 16384, KEPT = 1024, FUNCTION = 48 };
enum { IDLE = 0x1, APPLICATION = 0x2, POWER_CAP = 0x4 };

struct board {
    char name[64], uuid[64];
    int64_t major, minor, cores, mig;
    int64_t graphics_min, graphics_max, graphics_step, memory[4], memories;
    int64_t limit_min, limit_max, limit_default, clamp;        /* mW; clamp 0: limits are taken as they are */
    int64_t has_locks, has_memory_locks, has_application_clocks, has_limit, has_buffer, holds_when_idle, obeys;
    int64_t idle_mhz, idle_mw, load_mw, settle_us;
    /* settings */
    int64_t limit, application[2], lock[2], memory_lock[2], persistence;
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

static int64_t wall_lead_ns(void) {
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

static int64_t mean_power(const struct board *b, int64_t from, int64_t to) {
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
    if (file < 0) return 9;                                     /* as without a driver */
    state = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (state == MAP_FAILED) { state = 0; return 9; }
    return OK;
}

static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;    /* a file lock is one for all threads of a process */
static void hold(void) { pthread_mutex_lock(&threads); while (flock(file, LOCK_EX)) {} }
static void release(void) { flock(file, LOCK_UN); pthread_mutex_unlock(&threads); }

static int index_of(const void *handle) { return (int)((intptr_t)handle - 1); }

/* Begin a call: faults, delays, a lost board. The lock is held where it returns OK. */
static int begin(const char *function, void *handle, struct board **board) {
    int at = index_of(handle), code = OK;
    int64_t delay = 0;
    if (!state) return UNINITIALISED;
    if (at < 0 || at >= state->count) return INVALID;
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

/* ---- the library ----------------------------------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) { (void)flags; return open_state(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the stand-in"; }

int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.stand-in"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { if (!state) return UNINITIALISED; *count = state->count; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (!state) return UNINITIALISED;
    if (index >= state->count) return INVALID;
    if (state->boards[index].lost) return LOST;
    *handle = (void *)(intptr_t)(index + 1);
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    if (!state) return UNINITIALISED;
    for (int i = 0; i < state->count; i++)
        if (!strcmp(uuid, state->boards[i].uuid)) {
            *handle = (void *)(intptr_t)(i + 1);
            return state->boards[i].lost ? LOST : OK;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size) { BEGIN; snprintf(text, size, "%s", b->name); return end(b); }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned size) { BEGIN; snprintf(text, size, "%s", b->uuid); return end(b); }

int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    BEGIN; *major = (int)b->major; *minor = (int)b->minor; return end(b);
}
int nvmlDeviceGetNumGpuCores(void *handle, unsigned *cores) { BEGIN; *cores = (unsigned)b->cores; return end(b); }
int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *pending) {
    BEGIN;
    if (b->major < 8) return refuse(NOT_SUPPORTED);
    *now = *pending = (unsigned)b->mig;
    return end(b);
}

int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *mhz) {
    BEGIN;
    int64_t highest = b->memory[b->memories - 1];
    if (kind == MEMORY) *mhz = (unsigned)(b->memory_lock[1] && b->obeys ? b->memory_lock[1]
                                          : b->has_application_clocks ? b->application[0] : highest);
    else *mhz = (unsigned)observed(b, now_ns());
    return end(b);
}
int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned *mhz) {
    BEGIN; *mhz = (unsigned)(kind == MEMORY ? b->memory[b->memories - 1] : b->graphics_max); return end(b);
}
int nvmlDeviceGetApplicationsClock(void *handle, int kind, unsigned *mhz) {
    BEGIN;
    if (!b->has_application_clocks) return refuse(NOT_SUPPORTED);
    *mhz = (unsigned)b->application[kind == MEMORY ? 0 : 1];
    return end(b);
}
int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *reasons) {
    BEGIN;
    int told;
    target(b, now_ns() < b->busy_until_ns, &told);
    *reasons = (unsigned long long)told;
    return end(b);
}
int nvmlDeviceGetPerformanceState(void *handle, int *state_number) { BEGIN; *state_number = 0; return end(b); }
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) {
    BEGIN; rates[0] = now_ns() < b->busy_until_ns ? 100 : 0; rates[1] = rates[0] / 2; return end(b);
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) { (void)sensor; BEGIN; *celsius = 50; return end(b); }
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *bytes) {
    BEGIN; bytes[0] = 80ULL << 30; bytes[1] = 79ULL << 30; bytes[2] = 1ULL << 30; return end(b);
}
struct process { uint32_t pid; unsigned long long used; uint32_t instance, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *found) {
    BEGIN;
    unsigned room = *count;
    *count = 1;
    if (!found || room < 1) return refuse(7);  /* insufficient size: how many there are is told */
    found[0] = (struct process){(uint32_t)getpid(), 512ULL << 20, 0xffffffff, 0xffffffff};
    return end(b);
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj) {
    BEGIN; *mj = (unsigned long long)(b->energy_uj / 1000); return end(b);
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *mw) {
    BEGIN; *mw = (unsigned)power(b, observed(b, now_ns()), now_ns() < b->busy_until_ns); return end(b);
}

struct field { uint32_t id, scope; int64_t stamp, latency; uint32_t type, returned; union { double d; uint32_t u; uint64_t w; } value; };
int nvmlDeviceGetFieldValues(void *handle, int count, struct field *fields) {
    BEGIN;
    for (int i = 0; i < count; i++) {
        int known = (fields[i].id == 185 || fields[i].id == 186) && fields[i].scope == 0;
        fields[i].returned = known ? OK : NOT_SUPPORTED;
        fields[i].type = 1;
        fields[i].value.w = 0;
        if (known) fields[i].value.u = (uint32_t)power(b, observed(b, now_ns()), now_ns() < b->busy_until_ns);
    }
    return end(b);
}

struct sample { uint64_t stamp_us; union { double d; uint32_t u; uint64_t w; } value; };
int nvmlDeviceGetSamples(void *handle, int kind, unsigned long long since_us, int *type, unsigned *count, struct sample *out) {
    BEGIN;
    unsigned found = 0;
    int64_t step = 20000000, lead = wall_lead_ns(), now = now_ns();
    if (kind != 0 || !b->has_buffer) return refuse(NOT_SUPPORTED);
    *type = 1;
    if (!out) { *count = 120; return end(b); }
    int64_t newest = (now - now % (5 * step));                  /* they appear five at a time */
    for (int64_t at = newest - 118 * step; at <= newest && found < *count; at += step) {
        uint64_t stamp = (uint64_t)((at + lead) / 1000);
        if (stamp <= since_us) continue;
        out[found].stamp_us = stamp;
        out[found].value.w = 0;
        out[found++].value.u = (uint32_t)mean_power(b, at - step, at) + (uint32_t)(at / step % 3) * 10;
    }
    *count = found;
    end(b);
    return found ? OK : NOT_FOUND;
}

static int listed(struct board *b, const int64_t *clocks, unsigned length, unsigned *count, unsigned *out) {
    if (!out || *count < length) { *count = length; end(b); return SMALL; }
    for (unsigned i = 0; i < length; i++) out[i] = (unsigned)clocks[length - 1 - i];
    *count = length;
    return end(b);
}
int nvmlDeviceGetSupportedMemoryClocks(void *handle, unsigned *count, unsigned *out) {
    BEGIN; return listed(b, b->memory, (unsigned)b->memories, count, out);
}
int nvmlDeviceGetSupportedGraphicsClocks(void *handle, unsigned memory, unsigned *count, unsigned *out) {
    BEGIN;
    int64_t clocks[512];
    unsigned length = 0, known = 0;
    for (int i = 0; i < b->memories; i++) known |= b->memory[i] == memory;
    if (!known) return refuse(INVALID);
    for (int64_t mhz = b->graphics_min; mhz <= b->graphics_max && length < 512; mhz += b->graphics_step) clocks[length++] = mhz;
    return listed(b, clocks, length, count, out);
}

int nvmlDeviceGetPowerManagementLimit(void *handle, unsigned *mw) {
    BEGIN; if (!b->has_limit) return refuse(NOT_SUPPORTED); *mw = (unsigned)b->limit; return end(b);
}
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *mw) { BEGIN; *mw = (unsigned)b->limit; return end(b); }
int nvmlDeviceGetPowerManagementDefaultLimit(void *handle, unsigned *mw) {
    BEGIN; if (!b->has_limit) return refuse(NOT_SUPPORTED); *mw = (unsigned)b->limit_default; return end(b);
}
int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *low, unsigned *high) {
    BEGIN;
    if (!b->has_limit) return refuse(NOT_SUPPORTED);
    *low = (unsigned)b->limit_min; *high = (unsigned)b->limit_max;
    return end(b);
}
int nvmlDeviceGetPersistenceMode(void *handle, int *mode) { BEGIN; *mode = (int)b->persistence; return end(b); }

/* ---- setters --------------------------------------------------------------------------------------------------- */

static int supported(const struct board *b, int64_t mhz) {
    return mhz >= b->graphics_min && mhz <= b->graphics_max && (mhz - b->graphics_min) % b->graphics_step == 0;
}
static int supported_memory(const struct board *b, int64_t mhz) {
    for (int i = 0; i < b->memories; i++) if (b->memory[i] == mhz) return 1;
    return 0;
}
static int lock_clocks(struct board *b, int64_t low, int64_t high) {
    if (!b->has_locks || b->mig) return NOT_SUPPORTED;
    if (low > high) return INVALID;
    b->lock[0] = low; b->lock[1] = high;
    return OK;
}
static int lock_memory(struct board *b, int64_t low, int64_t high) {
    if (!b->has_memory_locks || b->mig) return NOT_SUPPORTED;
    if (low > high) return INVALID;
    b->memory_lock[0] = low; b->memory_lock[1] = high;
    return OK;
}
static int application_clocks(struct board *b, int64_t memory, int64_t graphics) {
    if (!b->has_application_clocks || b->mig) return NOT_SUPPORTED;
    if (!supported_memory(b, memory) || !supported(b, graphics)) return INVALID;
    b->application[0] = memory; b->application[1] = graphics;
    return OK;
}
static int limit(struct board *b, int64_t mw) {
    if (!b->has_limit) return NOT_SUPPORTED;
    if (mw < b->limit_min || mw > b->limit_max) return INVALID;
    b->limit = b->clamp && mw > b->clamp ? b->clamp : mw;
    return OK;
}
static int persist(struct board *b, int mode) { b->persistence = mode; return OK; }
static int reset_application(struct board *b) {
    return application_clocks(b, b->memory[b->memories - 1], b->graphics_max);
}

int nvmlDeviceSetGpuLockedClocks(void *handle, unsigned low, unsigned high) { SETTER(low, high, lock_clocks(b, low, high)); }
int nvmlDeviceResetGpuLockedClocks(void *handle) { SETTER(0, 0, lock_clocks(b, 0, 0)); }
int nvmlDeviceSetMemoryLockedClocks(void *handle, unsigned low, unsigned high) { SETTER(low, high, lock_memory(b, low, high)); }
int nvmlDeviceResetMemoryLockedClocks(void *handle) { SETTER(0, 0, lock_memory(b, 0, 0)); }
int nvmlDeviceSetApplicationsClocks(void *handle, unsigned memory, unsigned graphics) {
    SETTER(memory, graphics, application_clocks(b, memory, graphics));
}
int nvmlDeviceResetApplicationsClocks(void *handle) { SETTER(0, 0, reset_application(b)); }
int nvmlDeviceSetPowerManagementLimit(void *handle, unsigned mw) { SETTER(mw, 0, limit(b, mw)); }
int nvmlDeviceSetPersistenceMode(void *handle, int mode) { SETTER(mode, 0, persist(b, mode)); }
