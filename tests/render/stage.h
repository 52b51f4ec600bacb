/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Helpers that run the passes of src/correspondence one by one on a scanner of a test. */
#pragma once

#include "device.h"
#include "lines.h"
#include "scanners.h"

#include "correspondence/raster/raster.h"
#include "gl/context_private.h"
#include "operator/backend.h"

#include <lr/io.h>

/* One texel of the correspondence atlas. */
struct texel {
    uint32_t crystal; /* of the secondary, + 1; 0 = none */
    float weight;
};

struct stage_params {
    struct gl_context *ctx;
    lr_scanner *scanner; /* owned by the stage */
    int rays;
    const lr_image *mu; /* or NULL */
    int mu_steps;
    bool path_length;
    int min_tiles; /* 0 = one for each module */
};

struct stage {
    struct test_log log;
    struct gl_context *ctx;
    lr_scanner *scanner;
    lr_lors *lors;
    struct lr_plan *plan;
    struct lr_scene scene;
    struct lr_correspondence images;
    struct eye *eye;
    lr_grid grid;
    struct lr_backend_params backend_params; /* for lr_cpu_backend_create */
};

/* Fails the test with the last message in the stage's log. */
#define stage_check(stage, condition)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) fail_msg("%s: %s", #condition, (stage)->log.error);                                          \
    } while (0)

/* Counts of the device's work between begin and end (GL_ARB_pipeline_statistics_query). The context must be current. */
enum stage_counted {
    STAGE_VERTICES = 0, /* of draws */
    STAGE_FRAGMENTS,    /* at least; renderers count blocks of pixels */
    STAGE_COMPUTE,      /* invocations of compute shaders */
    STAGE_SAMPLES,      /* samples that fragments write to a target */
    STAGE_NUM_COUNTED
};
struct stage_counts {
    GLuint queries[STAGE_NUM_COUNTED];
    GLuint64 counts[STAGE_NUM_COUNTED]; /* after the end */
};
static const GLenum stage_counted[STAGE_NUM_COUNTED] = {GL_VERTICES_SUBMITTED_ARB, GL_FRAGMENT_SHADER_INVOCATIONS_ARB,
                                                        GL_COMPUTE_SHADER_INVOCATIONS_ARB, GL_SAMPLES_PASSED};

/* false, with a message, if the driver does not count. */
static inline bool stage_counts_begin(struct stage_counts *counts)
{
    bool can_count = false;
    GLint num_extensions = 0;
    glGetIntegerv(GL_NUM_EXTENSIONS, &num_extensions);
    for (GLint k = 0; k < num_extensions; k++) {
        can_count |=
            strcmp((const char *)glGetStringi(GL_EXTENSIONS, (GLuint)k), "GL_ARB_pipeline_statistics_query") == 0;
    }
    if (!can_count) {
        print_message("not counted: no GL_ARB_pipeline_statistics_query here\n");
        return false;
    }
    glGenQueries(STAGE_NUM_COUNTED, counts->queries); /* Mesa 22: glCreateQueries lacks these */
    for (int k = 0; k < STAGE_NUM_COUNTED; k++) glBeginQuery(stage_counted[k], counts->queries[k]);
    return true;
}

static inline void stage_counts_end(struct stage_counts *counts)
{
    for (int k = 0; k < STAGE_NUM_COUNTED; k++) {
        glEndQuery(stage_counted[k]);
        glGetQueryObjectui64v(counts->queries[k], GL_QUERY_RESULT, &counts->counts[k]);
    }
    glDeleteQueries(STAGE_NUM_COUNTED, counts->queries);
}

/* Edge of a square atlas with room for so many tiles. */
static inline int stage_atlas_size(const lr_scanner *scanner, int rays, int tiles)
{
    int most = 1;
    for (int k = 0; k < 2 * scanner->num_modules; k++) most = (int)fmax(most, scanner->modules[k / 2].crystals[k % 2]);
    return most * rays * (int)ceil(sqrt(tiles));
}

static inline void stage_close(void *self)
{
    struct stage *stage = self;
    assert_false(stage->ctx->saw_error);
    lr_correspondence_finish(&stage->images);
    lr_scene_finish(&stage->scene);
    lr_plan_destroy(stage->plan);
}

/* The stage is there until destroy_kept. */
static inline struct stage *stage_open(const struct stage_params *params)
{
    struct stage *stage = kept(1, sizeof(*stage));
    const int modules = params->scanner->num_modules;
    const int tiles = params->min_tiles > modules ? params->min_tiles : modules;
    *stage = (struct stage){.ctx = params->ctx, .scanner = keep(params->scanner)};
    test_log_init(&stage->log);
    stage->lors = keep(lr_lors_create(stage->scanner, &stage->log.log));
    stage->plan = lr_plan_create(&filled(struct lr_plan_params, .lors = stage->lors, .rays = params->rays,
                                         .atlas_size = stage_atlas_size(stage->scanner, params->rays, tiles),
                                         .log = &stage->log.log));
    stage_check(stage, stage->plan != NULL);
    stage_check(stage, lr_scene_init(&stage->scene, stage->ctx, stage->lors,
                                     &(struct lr_scene_absorption){params->mu, params->mu_steps}) == LR_OK);
    stage_check(stage, lr_correspondence_init(&stage->images, &stage->scene, stage->plan, params->path_length, false) ==
                           LR_OK);
    stage->eye = eye_create(stage->scanner, params->rays);
    stage->grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){1, 1, 1});
    stage->backend_params =
        filled(struct lr_backend_params, .scanner = stage->scanner, .lors = stage->lors, .grid = &stage->grid,
               .mode = LR_MODE_SAMPLED, .rays = params->rays, .samples = {1, 1, 1}, .mu = params->mu,
               .mu_steps = params->mu_steps, .threads = 1, .log = &stage->log.log);
    return keep_object(stage, stage_close);
}

/* Texels of the atlas. */
static inline int64_t stage_atlas_texels(const struct stage *stage)
{
    return (int64_t)stage->images.atlas->size[0] * stage->images.atlas->size[1];
}

static inline struct lr_plan_image stage_image(const struct stage *stage, const double point_mm[3], int primary,
                                               int slot)
{
    struct lr_plan_image image = {.primary = primary,
                                  .scale = 1,
                                  .tile_x = slot % stage->plan->columns * stage->plan->tile[0],
                                  .tile_y = slot / stage->plan->columns * stage->plan->tile[1]};
    for (int k = 0; k < 3; k++) lr_split_float(point_mm[k], &image.point[k], &image.rest[k]);
    return image;
}

static inline int64_t stage_texel(const struct stage *stage, const struct lr_plan_image *image, int x, int y)
{
    return (int64_t)(image->tile_y + y) * stage->images.atlas->size[0] + image->tile_x + x;
}

/* Makes the contents of the atlas: each pixel in the image's window gets a crystal of another module with probability
 * `density`; a macropixel has few different ones. Texels of the tile outside the window get crystals, too, which no
 * pass may read. */
static inline void stage_fill_tile(const struct stage *stage, const struct lr_plan_image *image, double density,
                                   struct texel *atlas, uint64_t *state)
{
    const lr_scanner *scanner = stage->scanner;
    const int rays = stage->plan->rays;
    const uint32_t base = (uint32_t)(scanner->num_crystals * test_random(state));
    for (int y = 0; y < stage->plan->tile[1]; y++) {
        for (int x = 0; x < stage->plan->tile[0]; x++) {
            struct texel *texel = &atlas[stage_texel(stage, image, x, y)];
            const uint32_t near = base + (uint32_t)(x / rays * 7 + y / rays * 3) + (uint32_t)(3 * test_random(state));
            *texel = (struct texel){.crystal = near % (uint32_t)scanner->num_crystals + 1,
                                    .weight = (float)(1e-6 + 1e-5 * test_random(state))};
            if (test_random(state) > density) *texel = (struct texel){0};
        }
    }
}

/* True if a texel of an image's tile lies in the primary's window. */
static inline bool stage_in_window(const struct stage *stage, const struct lr_plan_image *image, int x, int y)
{
    const int *crystals = stage->scanner->modules[image->primary].crystals;
    return x < crystals[0] * stage->plan->rays && y < crystals[1] * stage->plan->rays;
}

/* A batch with made-up images and atlas: the images belong to one module after the other, and fill all tiles. */
struct made_up {
    struct texel *atlas;
    struct lr_plan_image *images;
    struct lr_batch batch;
};

static inline struct made_up stage_make_up(const struct stage *stage, int num_images, double density, uint64_t *state)
{
    struct made_up made = {.atlas = kept(stage_atlas_texels(stage), sizeof(*made.atlas)),
                           .images = kept(num_images, sizeof(*made.images))};
    for (int k = 0; k < num_images; k++) {
        made.images[k] = stage_image(stage, (const double[3]){0}, k % stage->scanner->num_modules, k);
        if (density > 0) stage_fill_tile(stage, &made.images[k], density, made.atlas, state);
    }
    made.batch = (struct lr_batch){.images = made.images, .num_images = num_images, .atlas_rows = stage->plan->rows};
    return made;
}

static inline void stage_upload(struct stage *stage, const struct made_up *made)
{
    const int64_t bytes = made->batch.num_images * (int64_t)sizeof(*made->images);
    stage_check(stage, gl_texture_upload(stage->images.atlas->colours[0], NULL, made->atlas) == LR_OK);
    stage_check(stage, gl_buffer_upload(stage->images.images, 0, bytes, made->images) == LR_OK);
}

/* Five modules of a single crystal around the axis. */
static inline lr_scanner *create_single_crystals(void)
{
    const lr_module shape = shape_of(1, 1, 4, 3.5);
    lr_module modules[5];
    for (int m = 0; m < 5; m++) modules[m] = place_module(&shape, &(struct placement){72 * m, 30, 0, 0, 0, 0});
    return scanner_of(modules, 5, 0);
}

/* LOR of pixel (x, y) of an image and the crystal in its texel, or -1. */
static inline int64_t stage_lor(const struct stage *stage, const struct lr_plan_image *image, const int at[2],
                                uint32_t crystal)
{
    const int rays = stage->plan->rays;
    const int mine = stage->scanner->first_crystal[image->primary] +
                     at[1] / rays * stage->scanner->modules[image->primary].crystals[0] + at[0] / rays;
    return crystal == 0 ? -1 : lr_lors_number(stage->lors, mine, (int)crystal - 1);
}

/* A scanner of the presets. */
static inline lr_scanner *preset_scanner(const char *name)
{
    lr_scanner *scanner = lr_scanner_read(name, NULL);
    if (scanner == NULL) fail_msg("%s: %s", name, lr_last_error(NULL));
    return scanner;
}

/* Random values up to most_per_mm; crystals have about 0.02. The caller destroys the image. */
static inline lr_image *random_mu(const lr_grid *grid, double most_per_mm, uint64_t *state)
{
    lr_image *mu = non_null(lr_image_create(grid, NULL));
    for (int64_t v = 0; v < lr_grid_num_voxels(grid); v++) mu->values[v] = (float)(most_per_mm * test_random(state));
    return mu;
}
