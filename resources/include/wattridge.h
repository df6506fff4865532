/* Joules of a stretch of a program on a GPU, for C, C++ and, through ISO_C_BINDING, Fortran. Linux.
 *
 *     wattridge serve-energy --gpu 0 &          samples the board all along
 *     cc -I"$(wattridge serve-energy --include)" program.c
 *
 * One C file of a program defines WATTRIDGE_IMPLEMENTATION before it includes this header.
 *
 * A span holds all there is of it, and nothing is shared: any thread may measure its own, at once with others. Beginning
 * and ending take a look at the clock. The joules are those of the whole board between the two times, whatever ran.
 */
#ifndef WATTRIDGE_H
#define WATTRIDGE_H

#if defined(WATTRIDGE_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* clock_gettime, MSG_NOSIGNAL under -std=c99 */
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wattridge_span {
    int64_t begin_ns, end_ns; /* of CLOCK_MONOTONIC; end_ns is 0 until it has ended */
} wattridge_span;

/* Begin a span. Wait for the GPU before, as cudaDeviceSynchronize does, if earlier work is not to count. */
wattridge_span wattridge_begin(void);

/* End it. Wait for the GPU before: launches return before they have run. */
void wattridge_end(wattridge_span *span);

/* The joules of a span that has ended, and the ends of their 95 % interval where `low` and `high` are not NULL.
 *
 * Waits until the board's readings have come: 0.1 to 2 s. NAN if they are not known, with the reason in errno: ENOENT or
 * ECONNREFUSED if nothing serves, EINVAL if the span has not ended, EAGAIN if no answer came in 10 s, ENODATA if the board
 * tells no energy of it, as of one shorter than its readings; `wattridge serve-energy` prints why.
 * Asks at $WATTRIDGE_SOCKET, else at $XDG_RUNTIME_DIR/wattridge.sock. */
double wattridge_joules(const wattridge_span *span, double *low, double *high);

#ifdef __cplusplus
}
#endif

#ifdef WATTRIDGE_IMPLEMENTATION

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int64_t wattridge_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

wattridge_span wattridge_begin(void) {
    wattridge_span span;
    span.begin_ns = wattridge_now_ns();
    span.end_ns = 0;
    return span;
}

void wattridge_end(wattridge_span *span) { span->end_ns = wattridge_now_ns(); }

/* Send the question, and read one line; 0, or the errno of what failed. */
static int wattridge_ask(const char *path, char *line, size_t room) {
    struct sockaddr_un address;
    struct timeval patience;
    size_t got = 0;
    int failed = 0, connection;
    if (strlen(path) >= sizeof address.sun_path) return ENAMETOOLONG;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);
    patience.tv_sec = 10;
    patience.tv_usec = 0;
    connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connection < 0) return errno;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(connection, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line)) {
        failed = errno;
    }
    while (!failed && got + 1 < room && (got == 0 || line[got - 1] != '\n')) {
        ssize_t more = recv(connection, line + got, room - 1 - got, 0);
        if (more < 0) failed = errno;
        if (more == 0) failed = ENODATA;
        if (more > 0) got += (size_t)more;
    }
    line[got] = '\0';
    close(connection);
    return failed;
}

double wattridge_joules(const wattridge_span *span, double *low, double *high) {
    char path[4096], line[128];
    const char *named = getenv("WATTRIDGE_SOCKET"), *folder = getenv("XDG_RUNTIME_DIR");
    long long middle_uj, low_uj, high_uj;
    int failed = 0;
    if (low) *low = NAN;
    if (high) *high = NAN;
    if (span->end_ns <= span->begin_ns) failed = EINVAL;
    if (!named && !folder) failed = ENOENT;
    if (!failed) {
        snprintf(path, sizeof path, "%s%s", named ? named : folder, named ? "" : "/wattridge.sock");
        snprintf(line, sizeof line, "%lld %lld\n", (long long)span->begin_ns, (long long)span->end_ns);
        failed = wattridge_ask(path, line, sizeof line);
    }
    if (!failed && sscanf(line, "%lld %lld %lld", &middle_uj, &low_uj, &high_uj) != 3) failed = ENODATA;
    if (failed) {
        errno = failed;
        return NAN;
    }
    if (low && low_uj >= 0) *low = (double)low_uj * 1e-6;
    if (high && high_uj >= 0) *high = (double)high_uj * 1e-6;
    return (double)middle_uj * 1e-6;
}

#endif
#endif
