/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A time line of a context's passes: when the host told the device, when the device ran them, and when the
 * host waited. Where LORASTER_GL_TRACE names a folder, each context that has run a pass writes gl-PROCESS-NUMBER.json there
 * as it ends, as trace events that chrome://tracing and ui.perfetto.dev draw (Trace Event Format, complete
 * events of phase X). Two time stamps a pass cost the device some microseconds. */
#ifndef LR_GL_TRACE_H
#define LR_GL_TRACE_H

#include "gl/context.h"

struct gl_trace;

/* NULL where no trace is asked for, or it cannot be written, or there is no memory for one (logged). */
struct gl_trace *gl_trace_open(struct gl_context *ctx);

/* Around a pass; `label` is copied. The context is current. NULL as trace: nothing. */
void gl_trace_begin(struct gl_trace *trace, const char *label);
void gl_trace_end(struct gl_trace *trace);

/* The host has waited for `what` since begin_s of lr_clock_seconds. */
void gl_trace_wait(struct gl_trace *trace, const char *what, double begin_s);

/* Waits for the device, writes the file, or none where that fails, and frees. The context is current. */
void gl_trace_close(struct gl_trace *trace);

#endif
