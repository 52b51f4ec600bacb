/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/timer.h"

#include "base/mem.h"
#include "gl/context_private.h"

#include <stdlib.h>

/* Two time stamps rather than one elapsed time: llvmpipe counts the latter from the machine's start
 * when nothing was being drawn at its begin. */
struct gl_timer {
    GLuint stamps[2];
    bool ended;
};

struct gl_timer *gl_timer_create(struct gl_context *ctx, const char *label)
{
    struct gl_timer *timer = lr_alloc(1, sizeof(*timer), label, ctx->log);
    if (timer == NULL) {
        return NULL;
    }
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
