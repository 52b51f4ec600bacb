/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/timer.h"

#include "base/mem.h"
#include "gl/context_private.h"

#include <stdlib.h>

/* A timer has two time stamps. A query of the elapsed time is not used, because llvmpipe counts it from the machine's
 * start if nothing is being drawn at its begin. */
struct gl_timer {
    GLuint stamps[2];
    bool ended;
};

struct gl_timer *gl_timer_create(struct gl_context *ctx, const char *label)
{
    struct gl_timer *timer = lr_alloc(1, sizeof(*timer), label, ctx->log);
    if (timer == NULL) return NULL;
    glCreateQueries(GL_TIMESTAMP, 2, timer->stamps);
    glObjectLabel(GL_QUERY, timer->stamps[0], -1, label);
    glObjectLabel(GL_QUERY, timer->stamps[1], -1, label);
    return timer;
}

void gl_timer_destroy(struct gl_timer *timer)
{
    if (timer != NULL) {
        glDeleteQueries(2, timer->stamps);
        free(timer);
    }
}

void gl_timer_begin(struct gl_timer *timer)
{
    timer->ended = false;
    glQueryCounter(timer->stamps[0], GL_TIMESTAMP);
}

void gl_timer_end(struct gl_timer *timer)
{
    glQueryCounter(timer->stamps[1], GL_TIMESTAMP);
    timer->ended = true;
}

double gl_timer_seconds(struct gl_timer *timer)
{
    GLuint64 begin = 0, end = 0;
    if (timer->ended) {
        glGetQueryObjectui64v(timer->stamps[1], GL_QUERY_RESULT, &end);
        glGetQueryObjectui64v(timer->stamps[0], GL_QUERY_RESULT, &begin);
    }
    return end > begin ? (double)(end - begin) * 1e-9 : 0;
}

/* --- stopwatch --- */

/* The number of intervals that may be in flight, which exceeds the number of batches that any backend queues. */
enum { NUM_INTERVALS = 64 };

struct gl_stopwatch {
    struct gl_timer *intervals[NUM_INTERVALS];
    int64_t begun;        /* intervals begun since the stopwatch was made */
    int64_t read;         /* intervals whose time is in `total` */
    double total, before; /* seconds of all intervals, and of those begun before the reset */
    int64_t since;        /* the first interval since the reset */
};

struct gl_stopwatch *gl_stopwatch_create(struct gl_context *ctx, const char *label)
{
    struct gl_stopwatch *watch = lr_alloc(1, sizeof(*watch), label, ctx->log);
    for (int k = 0; watch != NULL && k < NUM_INTERVALS; k++) {
        watch->intervals[k] = gl_timer_create(ctx, label);
        if (watch->intervals[k] == NULL) {
            gl_stopwatch_destroy(watch);
            return NULL;
        }
    }
    return watch;
}

void gl_stopwatch_destroy(struct gl_stopwatch *watch)
{
    for (int k = 0; watch != NULL && k < NUM_INTERVALS; k++) gl_timer_destroy(watch->intervals[k]);
    free(watch);
}

/* The reset does not wait for intervals in progress. When their times arrive, their numbers show that they began before
 * the reset. */
void gl_stopwatch_reset(struct gl_stopwatch *watch)
{
    if (watch != NULL) {
        watch->since = watch->begun;
        watch->before = watch->total;
    }
}

static void read_interval(struct gl_stopwatch *watch)
{
    const double seconds = gl_timer_seconds(watch->intervals[watch->read % NUM_INTERVALS]);
    watch->total += seconds;
    watch->before += watch->read < watch->since ? seconds : 0.0;
    watch->read++;
}

void gl_stopwatch_begin(struct gl_stopwatch *watch)
{
    if (watch == NULL) return;
    if (watch->begun - watch->read == NUM_INTERVALS) read_interval(watch);
    gl_timer_begin(watch->intervals[watch->begun++ % NUM_INTERVALS]);
}

void gl_stopwatch_end(struct gl_stopwatch *watch)
{
    if (watch != NULL) gl_timer_end(watch->intervals[(watch->begun - 1) % NUM_INTERVALS]);
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
