/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/trace.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "gl/context_private.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Passes and waits beyond these are left out. */
enum { MOST_SPANS = 1 << 18, LABEL_BYTES = 56 };

struct span {
    char label[LABEL_BYTES];
    double begin_s, end_s; /* of the host */
    GLuint stamps[2];      /* of the device; 0 = a wait */
};

struct gl_trace {
    const lr_log *log;
    char path[4096], part[4104]; /* the file is `part` until it is whole */
    FILE *file;
    struct span *spans;
    int64_t count, room, left_out;
    GLuint64 device_ns; /* when it was opened, by the device's clock, */
    double host_s;      /* and by the host's */
};

/* Before the work: nobody likes to hear afterwards that there is no file. */
static struct gl_trace *open_file(struct gl_trace *trace)
{
    snprintf(trace->part, sizeof(trace->part), "%s.part", trace->path);
    trace->file = fopen(trace->part, "w");
    if (trace->file == NULL) {
        lr_warn(trace->log,
                "there will be no trace of passes, since %s cannot be written: LORASTER_GL_TRACE "
                "has to name a folder",
                trace->path);
        free(trace);
        return NULL;
    }
    return trace;
}

struct gl_trace *gl_trace_open(struct gl_context *ctx)
{
    static atomic_int number;
    const char *folder = getenv("LORASTER_GL_TRACE");
    if (folder == NULL || *folder == '\0') return NULL;
    struct gl_trace *trace = lr_alloc(1, sizeof(*trace), "a trace of passes", ctx->log);
    if (trace == NULL) return NULL;
    GLint64 now = 0;
    glGetInteger64v(GL_TIMESTAMP, &now);
    trace->log = ctx->log;
    trace->device_ns = (GLuint64)now;
    trace->host_s = lr_clock_seconds();
    snprintf(trace->path, sizeof(trace->path), "%s/gl-%ld-%d.json", folder, (long)getpid(),
             atomic_fetch_add(&number, 1));
    return open_file(trace);
}

/* NULL: there is no room for another one. */
static struct span *add_span(struct gl_trace *trace, const char *label, double begin_s)
{
    const struct lr_items items = {sizeof(*trace->spans), "a trace of passes", trace->log};
    if (trace->left_out > 0 || trace->count == MOST_SPANS ||
        lr_grow(&trace->spans, &trace->room, trace->count + 1, &items) != LR_OK) {
        trace->left_out++;
        return NULL;
    }
    struct span *span = &trace->spans[trace->count++];
    *span = (struct span){.begin_s = begin_s};
    gl_copy_text(span->label, sizeof(span->label), label);
    return span;
}

void gl_trace_begin(struct gl_trace *trace, const char *label)
{
    struct span *span = trace != NULL ? add_span(trace, label, lr_clock_seconds()) : NULL;
    if (span != NULL) {
        glCreateQueries(GL_TIMESTAMP, 2, span->stamps);
        glQueryCounter(span->stamps[0], GL_TIMESTAMP);
    }
}

void gl_trace_end(struct gl_trace *trace)
{
    if (trace != NULL && trace->left_out == 0) {
        struct span *span = &trace->spans[trace->count - 1];
        glQueryCounter(span->stamps[1], GL_TIMESTAMP);
        span->end_s = lr_clock_seconds();
    }
}

void gl_trace_wait(struct gl_trace *trace, const char *what, double begin_s)
{
    struct span *span = trace != NULL ? add_span(trace, what, begin_s) : NULL;
    if (span != NULL) span->end_s = lr_clock_seconds();
}

/* --- the file --- */

enum track { HOST = 1, DEVICE };

struct event {
    const char *label;
    enum track track;
    double begin_us, us;
};

static void put_event(FILE *file, const struct event *event)
{
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"", (int)event->track,
            event->begin_us, event->us);
    for (const char *c = event->label; *c != '\0'; c++) fprintf(file, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    fputs("\"}", file);
}

static void put_device(FILE *file, const struct gl_trace *trace, const struct span *span)
{
    GLuint64 ns[2] = {0, 0};
    for (int k = 0; k < 2; k++) glGetQueryObjectui64v(span->stamps[k], GL_QUERY_RESULT, &ns[k]);
    put_event(file, &(struct event){.label = span->label,
                                    .track = DEVICE,
                                    .begin_us = ((double)ns[0] - (double)trace->device_ns) * 1e-3,
                                    .us = ((double)ns[1] - (double)ns[0]) * 1e-3});
}

static void put_span(FILE *file, const struct gl_trace *trace, const struct span *span)
{
    char label[LABEL_BYTES + 16];
    const bool is_wait = span->stamps[0] == 0;
    snprintf(label, sizeof(label), is_wait ? "wait: %s" : "%s", span->label);
    put_event(file, &(struct event){.label = label,
                                    .track = HOST,
                                    .begin_us = (span->begin_s - trace->host_s) * 1e6,
                                    .us = (span->end_s - span->begin_s) * 1e6});
    if (!is_wait) put_device(file, trace, span);
}

static void put_names(FILE *file)
{
    fprintf(file,
            "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
            "\"host\"}},\n"
            "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
            "\"device\"}}",
            (int)HOST, (int)DEVICE);
}

static void write_spans(const struct gl_trace *trace)
{
    fprintf(trace->file, "{\"displayTimeUnit\":\"ms\",\"left_out\":%lld,\"traceEvents\":[\n",
            (long long)trace->left_out);
    put_names(trace->file);
    for (int64_t k = 0; k < trace->count; k++) put_span(trace->file, trace, &trace->spans[k]);
    fputs("\n]}\n", trace->file);
}

static bool write_file(const struct gl_trace *trace)
{
    if (trace->count > 0) write_spans(trace);
    const bool is_written = ferror(trace->file) == 0;
    return fclose(trace->file) == 0 && is_written && trace->count > 0 && rename(trace->part, trace->path) == 0;
}

void gl_trace_close(struct gl_trace *trace)
{
    if (trace == NULL) return;
    if (!write_file(trace)) remove(trace->part);
    for (int64_t k = 0; k < trace->count; k++)
        glDeleteQueries(trace->spans[k].stamps[0] != 0 ? 2 : 0, trace->spans[k].stamps);
    free(trace->spans);
    free(trace);
}
