/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/format.h"

#include <stddef.h>

static const struct gl_format formats[] = {
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1, GL_FORMAT_FLOAT},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, 2, GL_FORMAT_FLOAT},
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 4, GL_FORMAT_FLOAT},
    {GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT, 2, GL_FORMAT_UINT},
    {GL_RG16UI, GL_RG_INTEGER, GL_UNSIGNED_SHORT, 4, GL_FORMAT_UINT},
    {GL_RGBA16UI, GL_RGBA_INTEGER, GL_UNSIGNED_SHORT, 8, GL_FORMAT_UINT},
    {GL_R16F, GL_RED, GL_HALF_FLOAT, 2, GL_FORMAT_FLOAT},
    {GL_RG16F, GL_RG, GL_HALF_FLOAT, 4, GL_FORMAT_FLOAT},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, 8, GL_FORMAT_FLOAT},
    {GL_R32F, GL_RED, GL_FLOAT, 4, GL_FORMAT_FLOAT},
    {GL_RG32F, GL_RG, GL_FLOAT, 8, GL_FORMAT_FLOAT},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, 16, GL_FORMAT_FLOAT},
    {GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, 4, GL_FORMAT_UINT},
    {GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, 8, GL_FORMAT_UINT},
    {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, 16, GL_FORMAT_UINT},
    {GL_R32I, GL_RED_INTEGER, GL_INT, 4, GL_FORMAT_INT},
    {GL_RG32I, GL_RG_INTEGER, GL_INT, 8, GL_FORMAT_INT},
    {GL_RGBA32I, GL_RGBA_INTEGER, GL_INT, 16, GL_FORMAT_INT},
    {GL_DEPTH_COMPONENT32F, GL_DEPTH_COMPONENT, GL_FLOAT, 4, GL_FORMAT_DEPTH},
};

const struct gl_format *gl_format_find(GLenum internal)
{
    for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
        if (formats[k].internal == internal) {
            return &formats[k];
        }
    }
    return NULL;
}
