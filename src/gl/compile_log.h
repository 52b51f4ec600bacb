/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_COMPILE_LOG_H
#define LR_GL_COMPILE_LOG_H

#include "gl/shader_store.h"

/* Logs what a compiler said about a shader whose unmarked text it was given. Lines in the forms
 *     0:12(3): error: ...      0(12) : error C1234: ...      ERROR: 0:12: ...
 * get file name and line of the source instead of the line number. The first error is logged as
 * one sentence of status LR_FAILED, together with its source line; before it, every other line as
 * information. `label` is the program's. */
void gl_compile_log_report(const lr_log *log, const struct gl_shader_source *source, const char *label,
                           const char *text);

#endif
