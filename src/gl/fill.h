/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Large fills by a shader, for resource.c. */
#ifndef LR_GL_FILL_H
#define LR_GL_FILL_H

#include "gl/resource.h"

/* Whether a shader is the quicker way for so many bytes: on graphics processors, from 64 KiB on. */
bool gl_fill_serves(const struct gl_context *ctx, int64_t bytes);

/* Repeats two words over a range of `to`, whose offset and bytes are multiples of 4; the program is made
 * at first use and kept by the context. Commands that follow see the words.
 * errors: as gl_program_create and gl_pass_run, logged; the range then holds anything. */
lr_status gl_fill(struct gl_context *ctx, const struct gl_buffer_range *range, const uint32_t words[2]);

#endif
