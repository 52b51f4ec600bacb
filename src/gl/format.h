/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_FORMAT_H
#define LR_GL_FORMAT_H

#include <GL/glew.h>

/* How texels of an internal format are held in memory. */
struct gl_format {
    GLenum internal, pixel, type;
    int bytes;
    enum { GL_FORMAT_FLOAT, GL_FORMAT_UINT, GL_FORMAT_INT, GL_FORMAT_DEPTH } kind;
};

/* The entry for an internal format of resource.h; NULL for others. */
const struct gl_format *gl_format_find(GLenum internal);

#endif
