/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/timer.h"

#include "base/mem.h"
#include "gl/context_private.h"

#include <stdlib.h>

/* The number of intervals that may be unfinished at the same time. It is more than any backend queues. */
enum { NUM_INTERVALS = 64 };

struct gl_stopwatch {
    /* Time stamps at the beginning and the end of each interval. OpenGL can also measure elapsed times itself. However,
     * llvmpipe counts such a time from the start of the machine if the device is idle at the beginning of the
     * interval. */
    GLuint stamps[NUM_INTERVALS][2];
    int64_t begun;        /* number of intervals that have begun since the stopwatch was made */
    int64_t read;         /* number of intervals whose time is in `total` */
    double total, before; /* total: time of all intervals that were read, s; before: time of the intervals before the
                             reset, s */
    int64_t since;        /* number of the first interval since the reset */
};

struct gl_stopwatch *gl_stopwatch_create(struct gl_context *ctx, const char *label)
{
    struct gl_stopwatch *watch = lr_alloc(1, sizeof(*watch), label, ctx->log);
    if (watch == NULL) return NULL;
    glCreateQueries(GL_TIMESTAMP, 2 * NUM_INTERVALS, watch->stamps[0]);
    for (int k = 0; k < NUM_INTERVALS; k++) {
        glObjectLabel(GL_QUERY, watch->stamps[k][0], -1, label);
        glObjectLabel(GL_QUERY, watch->stamps[k][1], -1, label);
    }
    return watch;
}

void gl_stopwatch_destroy(struct gl_stopwatch *watch)
{
    if (watch != NULL) glDeleteQueries(2 * NUM_INTERVALS, watch->stamps[0]);
    free(watch);
}

/* The reset does not wait for unfinished intervals. When the time of such an interval is read later, the interval's
 * number shows that it began before the reset. */
void gl_stopwatch_reset(struct gl_stopwatch *watch)
{
    if (watch != NULL) {
        watch->since = watch->begun;
        watch->before = watch->total;
    }
}

static void read_interval(struct gl_stopwatch *watch)
{
    const GLuint *stamps = watch->stamps[watch->read % NUM_INTERVALS];
    GLuint64 begin = 0, end = 0;
    glGetQueryObjectui64v(stamps[1], GL_QUERY_RESULT, &end);
    glGetQueryObjectui64v(stamps[0], GL_QUERY_RESULT, &begin);
    const double seconds = end > begin ? (double)(end - begin) * 1e-9 : 0;
    watch->total += seconds;
    watch->before += watch->read < watch->since ? seconds : 0.0;
    watch->read++;
}

void gl_stopwatch_begin(struct gl_stopwatch *watch)
{
    if (watch == NULL) return;
    if (watch->begun - watch->read == NUM_INTERVALS) read_interval(watch);
    glQueryCounter(watch->stamps[watch->begun++ % NUM_INTERVALS][0], GL_TIMESTAMP);
}

void gl_stopwatch_end(struct gl_stopwatch *watch)
{
    if (watch != NULL) glQueryCounter(watch->stamps[(watch->begun - 1) % NUM_INTERVALS][1], GL_TIMESTAMP);
}

double gl_stopwatch_total(struct gl_stopwatch *watch)
{
    while (watch != NULL && watch->read < watch->begun) read_interval(watch);
    return watch != NULL ? watch->total : 0;
}

double gl_stopwatch_seconds(struct gl_stopwatch *watch)
{
    const double total = gl_stopwatch_total(watch);
    return watch != NULL ? total - watch->before : 0;
}
