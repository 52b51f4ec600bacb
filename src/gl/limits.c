/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/context_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of GL_NVX_gpu_memory_info and GL_ATI_meminfo, both in KiB. */
enum { DEDICATED_MEMORY_NVX = 0x9047, TEXTURE_FREE_MEMORY_ATI = 0x87FC };

void gl_copy_text(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from ? from : "");
}

struct gl_amount gl_amount_of(int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 5) {
        value /= 1024;
        unit++;
    }
    struct gl_amount amount;
    snprintf(amount.text, sizeof(amount.text), "%.*f %s", unit > 0 ? 1 : 0, value, units[unit]);
    return amount;
}

int gl_integer(GLenum what)
{
    GLint value = 0;
    glGetIntegerv(what, &value);
    return value;
}

static bool names_software(const char *renderer)
{
    static const char *const names[] = {"llvmpipe", "softpipe", "swrast", "SWR", "Software Rasterizer"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        if (strstr(renderer, names[k]) != NULL) return true;
    return false;
}

/* What is asked of the list of extensions, which is long. */
struct extensions {
    bool nvx_memory, ati_memory, float_atomics, viewport_layers, parallel_compile;
};

static struct extensions read_extensions(void)
{
    struct extensions has = {0};
    const int count = gl_integer(GL_NUM_EXTENSIONS);
    for (int k = 0; k < count; k++) {
        const char *name = (const char *)glGetStringi(GL_EXTENSIONS, (GLuint)k);
        if (name == NULL) continue; /* the error is pending */
        has.nvx_memory |= strcmp(name, "GL_NVX_gpu_memory_info") == 0;
        has.ati_memory |= strcmp(name, "GL_ATI_meminfo") == 0;
        has.float_atomics |= strcmp(name, "GL_NV_shader_atomic_float") == 0;
        has.viewport_layers |= strcmp(name, "GL_ARB_shader_viewport_layer_array") == 0;
        has.parallel_compile |= strcmp(name, "GL_KHR_parallel_shader_compile") == 0;
    }
    return has;
}

static int64_t device_memory(const struct extensions *has)
{
    GLint kibibytes[4] = {0};
    if (has->nvx_memory)
        glGetIntegerv(DEDICATED_MEMORY_NVX, kibibytes);
    else if (has->ati_memory)
        glGetIntegerv(TEXTURE_FREE_MEMORY_ATI, kibibytes);
    return (int64_t)(uint32_t)kibibytes[0] * 1024;
}

static bool wants_small_batches(bool software)
{
    const char *batches = getenv("LORASTER_BATCHES");
    if (batches == NULL || (strcmp(batches, "small") != 0 && strcmp(batches, "large") != 0)) return software;
    return strcmp(batches, "small") == 0;
}

static void read_driver(struct gl_limits *limits)
{
    gl_copy_text(limits->renderer, sizeof(limits->renderer), (const char *)glGetString(GL_RENDERER));
    gl_copy_text(limits->vendor, sizeof(limits->vendor), (const char *)glGetString(GL_VENDOR));
    gl_copy_text(limits->version, sizeof(limits->version), (const char *)glGetString(GL_VERSION));
    limits->software = names_software(limits->renderer);
    limits->small_batches = wants_small_batches(limits->software);
    const struct extensions has = read_extensions();
    limits->nv_float_atomics = has.float_atomics;
    limits->viewport_layer_array = has.viewport_layers;
    limits->parallel_compile = has.parallel_compile;
    limits->memory_bytes = device_memory(&has);
}

static void read_sizes(struct gl_limits *limits)
{
    GLint64 storage = 0;
    glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &storage);
    limits->max_storage_bytes = storage;
    limits->max_texture_size = gl_integer(GL_MAX_TEXTURE_SIZE);
    limits->max_3d_texture_size = gl_integer(GL_MAX_3D_TEXTURE_SIZE);
    limits->max_array_layers = gl_integer(GL_MAX_ARRAY_TEXTURE_LAYERS);
    glGetIntegerv(GL_MAX_VIEWPORT_DIMS, limits->max_viewport_size);
    limits->max_uniform_bytes = gl_integer(GL_MAX_UNIFORM_BLOCK_SIZE);
    limits->storage_alignment = gl_integer(GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
    limits->max_storage_bindings = gl_integer(GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS);
    limits->max_vertex_storage_blocks = gl_integer(GL_MAX_VERTEX_SHADER_STORAGE_BLOCKS);
    limits->max_fragment_storage_blocks = gl_integer(GL_MAX_FRAGMENT_SHADER_STORAGE_BLOCKS);
    limits->max_compute_storage_blocks = gl_integer(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS);
    limits->max_vertex_images = gl_integer(GL_MAX_VERTEX_IMAGE_UNIFORMS);
    limits->max_fragment_images = gl_integer(GL_MAX_FRAGMENT_IMAGE_UNIFORMS);
    limits->max_clip_distances = gl_integer(GL_MAX_CLIP_DISTANCES);
    limits->max_colour_attachments = gl_integer(GL_MAX_COLOR_ATTACHMENTS);
    limits->max_compute_shared_bytes = gl_integer(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
    limits->max_compute_invocations = gl_integer(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
    for (GLuint k = 0; k < 3; k++) {
        glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, k, &limits->max_compute_groups[k]);
        glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_SIZE, k, &limits->max_compute_group_size[k]);
    }
}

void gl_limits_read(struct gl_limits *limits)
{
    read_driver(limits);
    read_sizes(limits);
}

void gl_context_clear_by_driver(struct gl_context *ctx)
{
    ctx->clears_by_driver = true;
}

const struct gl_limits *gl_context_limits(const struct gl_context *ctx)
{
    return &ctx->limits;
}
