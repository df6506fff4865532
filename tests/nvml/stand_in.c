/* A stand-in for libnvidia-ml.so.1 over the boards of stand_in.h.
 *
 * It has no symbol that the real library lacks, and the real semantics: a lock can be set and reset, never read.
 */
enum { OK, UNINITIALISED, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, SMALL = 7, NO_LIBRARY = 12, LOST = 15 };
enum { GRAPHICS, SM, MEMORY, VIDEO };
#define NO_DRIVER 9
#define VENDOR NVIDIA
#include "stand_in.h"

/* ---- the library ----------------------------------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) { (void)flags; return open_state(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the stand-in"; }

int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.stand-in"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { if (!state) return UNINITIALISED; *count = (unsigned)count_of_vendor(); return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (!state) return UNINITIALISED;
    int at = place_of((int)index);
    if (at < 0) return INVALID;
    if (state->boards[at].lost) return LOST;
    *handle = (void *)(intptr_t)(at + 1);
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    if (!state) return UNINITIALISED;
    for (int i = 0; i < state->count; i++)
        if (state->boards[i].vendor == VENDOR && !strcmp(uuid, state->boards[i].uuid)) {
            *handle = (void *)(intptr_t)(i + 1);
            return state->boards[i].lost ? LOST : OK;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size) { BEGIN; snprintf(text, size, "%s", b->name); return end(b); }
int nvmlDeviceGetSerial(void *handle, char *text, unsigned size) { BEGIN; snprintf(text, size, "0324K19-%05d", (int)(intptr_t)handle); return end(b); }
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
int nvmlDeviceGetDefaultApplicationsClock(void *handle, int kind, unsigned *mhz) {
    BEGIN;
    if (!b->has_application_clocks) return refuse(NOT_SUPPORTED);
    *mhz = (unsigned)(kind == MEMORY ? b->memory[b->memories - 1] : b->graphics_max);
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

/* Workload power profiles, of Blackwell and newer: the number of one is its kind. Of those that exclude each other
 * the one with the least number is enforced. */
struct mask { uint32_t words[8]; };
struct profile { uint32_t version, kind, priority; struct mask conflicts; };
struct profiles { uint32_t version; struct mask known; struct profile each[255]; };
struct current { uint32_t version; struct mask known, requested, enforced; };
struct requested { uint32_t version; struct mask wanted; };
enum { VERSION_MISMATCH = 25 };
static unsigned version_of(size_t size) { return (unsigned)size | 1u << 24; }
static struct mask mask_of(int64_t bits) {
    struct mask made = {{0}};
    made.words[0] = (uint32_t)bits; made.words[1] = (uint32_t)(bits >> 32);
    return made;
}
static int64_t enforced(const struct board *b) {
    int64_t fight = b->requested & b->conflicts;
    return (b->requested & ~b->conflicts) | (fight & -fight);
}
int nvmlDeviceWorkloadPowerProfileGetProfilesInfo(void *handle, struct profiles *out) {
    BEGIN;
    if (out->version != version_of(sizeof *out)) return refuse(VERSION_MISMATCH);
    if (!b->profiles) return refuse(NOT_SUPPORTED);
    out->known = mask_of(b->profiles);
    for (int i = 0; i < 64; i++) {
        if (!(b->profiles >> i & 1)) continue;
        out->each[i].kind = (uint32_t)i;
        out->each[i].priority = (uint32_t)(100 - i);
        out->each[i].conflicts = mask_of(b->conflicts >> i & 1 ? b->conflicts & ~(1LL << i) : 0);
    }
    return end(b);
}
int nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(void *handle, struct current *out) {
    BEGIN;
    if (out->version != version_of(sizeof *out)) return refuse(VERSION_MISMATCH);
    if (!b->profiles) return refuse(NOT_SUPPORTED);
    out->known = mask_of(b->profiles);
    out->requested = mask_of(b->requested);
    out->enforced = mask_of(enforced(b));
    return end(b);
}

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

static int request(struct board *b, const struct requested *in, int add) {
    int64_t bits = in->wanted.words[0] | (int64_t)in->wanted.words[1] << 32;
    if (in->version != version_of(sizeof *in)) return VERSION_MISMATCH;
    if (!b->profiles) return NOT_SUPPORTED;
    if (bits & ~b->profiles) return INVALID;
    b->requested = add ? b->requested | bits : b->requested & ~bits;
    return OK;
}

int nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(void *handle, struct requested *in) {
    SETTER(in->wanted.words[0], 0, request(b, in, 1));
}
int nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(void *handle, struct requested *in) {
    SETTER(in->wanted.words[0], 0, request(b, in, 0));
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
