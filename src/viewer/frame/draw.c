/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/draw.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAW_BIND_MODULES = 0, DRAW_BIND_COLOURS, DRAW_BIND_VALUES };

/* Largest number of voxels that are uploaded in one frame (32 MiB). */
enum { PIECE_VOXELS = 1 << 23 };

static const uint32_t plain_colour = 0x6f8fafff;

/* --- making --- */

struct draw *draw_create(struct gl_context *ctx)
{
    struct draw *draw = lr_alloc(1, sizeof(*draw), "a scene", gl_context_log(ctx));
    if (draw == NULL) return NULL;
    draw->ctx = ctx;
    draw->empty = gl_texture_create(
        ctx, &(struct gl_texture_params){
                 .label = "no image", .target = GL_TEXTURE_3D, .format = GL_R32F, .width = 1, .height = 1, .depth = 1});
    static const struct gl_program_params programs[DRAW_NUM_PROGRAMS] = {
        [DRAW_CRYSTALS] = {.vertex = "viewer/view_crystals.vert",
                           .fragment = "viewer/view_crystals.frag",
                           .label = "crystals"},
        [DRAW_BOXES] = {.vertex = "viewer/view_boxes.vert", .fragment = "viewer/view_flat.frag", .label = "modules"},
        [DRAW_LINES] = {.vertex = "viewer/view_lines.vert", .fragment = "viewer/view_lines.frag", .label = "lines"},
        [DRAW_SLICE] = {.vertex = "viewer/view_slice.vert", .fragment = "viewer/view_slice.frag", .label = "slice"},
        [DRAW_VOLUME] = {.vertex = "viewer/view_volume.vert", .fragment = "viewer/view_volume.frag", .label = "volume"},
    };
    bool good = draw->empty != NULL;
    for (int k = 0; k < DRAW_NUM_PROGRAMS && good; k++) {
        draw->programs[k] = gl_program_start(ctx, &programs[k]);
        good = draw->programs[k] != NULL;
    }
    for (int k = 0; k <= DRAW_NUM_MAPS && good; k++) {
        uint8_t texels[256][4];
        draw->maps[k] = gl_texture_create(
            ctx, &(struct gl_texture_params){
                     .label = "colour map", .format = GL_RGBA8, .width = 256, .height = 1, .linear = true});
        for (int n = 0; n < 256; n++) {
            const double t = n / 255.0;
            const lr_colour colour = k < DRAW_NUM_MAPS ? lr_colour_of((lr_colour_map)k, t) : draw_tube_colour(t);
            memcpy(texels[n], (uint8_t[4]){colour.r, colour.g, colour.b, 255}, 4);
        }
        good = draw->maps[k] != NULL && gl_texture_upload(draw->maps[k], NULL, texels) == LR_OK;
    }
    if (!good) {
        draw_destroy(draw);
        return NULL;
    }
    return draw;
}

static void forget_scanner(struct draw *draw)
{
    struct gl_buffer **buffers[] = {&draw->modules, &draw->colours, &draw->values};
    for (size_t k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++) {
        gl_buffer_destroy(*buffers[k]);
        *buffers[k] = NULL;
    }
    draw->num_modules = draw->num_crystals = 0;
    draw->crystals_largest = 0.0;
}

static void forget_image(struct draw *draw, enum draw_image which)
{
    if (!draw->is_lent[which]) gl_texture_destroy(draw->images[which]);
    gl_texture_destroy(draw->coming[which].texture);
    draw->coming[which] = (struct draw_coming){0};
    draw->images[which] = NULL;
    draw->is_lent[which] = false;
    draw->changes[which]++;
}

void draw_destroy(struct draw *draw)
{
    if (draw == NULL) return;
    forget_scanner(draw);
    for (int k = 0; k < DRAW_NUM_PROGRAMS; k++) gl_program_destroy(draw->programs[k]);
    for (int k = 0; k <= DRAW_NUM_MAPS; k++) gl_texture_destroy(draw->maps[k]);
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) forget_image(draw, (enum draw_image)k);
    for (int k = 0; k < DRAW_NUM_LINES; k++) gl_buffer_destroy(draw->lines[k]);
    gl_texture_destroy(draw->empty);
    free(draw);
}

/* --- the scanner --- */

/* Memory layout of the data that viewer/view_modules.glsl reads. */
struct module_words {
    float centre[4], u[4], v[4], normal[4], face[4];
};

lr_status draw_set_scanner(struct draw *draw, const lr_scanner *scanner)
{
    forget_scanner(draw);
    if (scanner == NULL) return LR_OK;
    const lr_log *log = gl_context_log(draw->ctx);
    struct module_words *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "modules to draw", log);
    if (modules != NULL) {
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *module = &scanner->modules[m];
            modules[m] = (struct module_words){
                .centre = {[3] = (float)module->crystals[0]},
                .u = {[3] = (float)module->pitch_mm[0]},
                .v = {[3] = (float)module->pitch_mm[1]},
                .normal = {[3] = (float)scanner->first_crystal[m]},
                .face = {(float)module->face_mm[0], (float)module->face_mm[1], (float)module->depth_mm,
                         (float)module->crystals[1]},
            };
            for (int k = 0; k < 3; k++) {
                modules[m].centre[k] = (float)module->centre_mm[k];
                modules[m].u[k] = (float)module->u[k];
                modules[m].v[k] = (float)module->v[k];
                modules[m].normal[k] = (float)module->normal[k];
            }
        }

        draw->modules = gl_data_buffer(draw->ctx, "modules", scanner->num_modules * (int64_t)sizeof(*modules), modules);
        draw->colours = gl_data_buffer(draw->ctx, "colours of modules", 4 * (int64_t)scanner->num_modules, NULL);
        draw->values = gl_data_buffer(draw->ctx, "values of crystals", 4 * (int64_t)scanner->num_crystals, NULL);
    }

    free(modules);
    if (draw->modules == NULL || draw->colours == NULL || draw->values == NULL) {
        forget_scanner(draw);
        return LR_FAILED;
    }
    draw->num_modules = scanner->num_modules;
    draw->num_crystals = scanner->num_crystals;
    gl_buffer_clear(draw->colours, plain_colour);
    return draw_set_crystal_values(draw, NULL, 0.0);
}

lr_status draw_set_module_colours(struct draw *draw, const uint32_t *colours)
{
    return draw->colours != NULL ? gl_buffer_upload(draw->colours, 0, 4 * (int64_t)draw->num_modules, colours) : LR_OK;
}

lr_status draw_set_crystal_values(struct draw *draw, const float *values, double largest)
{
    const float none = -1.0f;
    uint32_t word;
    draw->crystals_largest = values != NULL && draw->values != NULL ? largest : 0.0;
    if (draw->values == NULL) return LR_OK;
    if (values != NULL) return gl_buffer_upload(draw->values, 0, 4 * (int64_t)draw->num_crystals, values);
    memcpy(&word, &none, sizeof(word));
    gl_buffer_clear(draw->values, word);
    return LR_OK;
}

/* --- images --- */

static struct gl_texture *make_texture(struct draw *draw, enum draw_image which, const lr_grid *grid)
{
    static const char *const labels[] = {"image",          "mu-map", "tube",        "sensitivity",
                                         "reconstruction", "kernel", "histo-image", "second image"};
    return gl_texture_create(draw->ctx, &(struct gl_texture_params){.label = labels[which],
                                                                    .target = GL_TEXTURE_3D,
                                                                    .format = GL_R32F,
                                                                    .width = grid->size[0],
                                                                    .height = grid->size[1],
                                                                    .depth = grid->size[2],
                                                                    .is_unset = true,
                                                                    .zero_outside = true});
}

lr_status draw_set_image(struct draw *draw, enum draw_image which, const lr_image *image)
{
    if (image == NULL) {
        forget_image(draw, which);
        return LR_OK;
    }
    const struct gl_texture *old = draw->images[which];
    const int *size = image->grid.size;
    draw->grids[which] = image->grid;
    if (old == NULL || draw->is_lent[which] || old->size[0] != size[0] || old->size[1] != size[1] ||
        old->size[2] != size[2]) {
        forget_image(draw, which);
        draw->images[which] = make_texture(draw, which, &image->grid);
        if (draw->images[which] == NULL) return LR_FAILED;
    }

    draw->changes[which]++;
    draw->highest[which] = 0.0f;
    for (int64_t v = 0; v < lr_grid_num_voxels(&image->grid); v++)
        draw->highest[which] = fmaxf(draw->highest[which], image->values[v]);
    return gl_texture_upload(draw->images[which], NULL, image->values);
}

/* --- large images --- */

/* Uploads the next slices of an image, at least one. */
static lr_status upload_piece(struct draw *draw, enum draw_image which)
{
    struct draw_coming *coming = &draw->coming[which];
    const int *size = coming->image->grid.size;
    const int64_t slice = (int64_t)size[0] * size[1], fitting = PIECE_VOXELS / slice;
    const int left = size[2] - coming->num_slices;
    const int count = fitting < 1 ? 1 : fitting < left ? (int)fitting : left;
    const struct gl_box box = {0, 0, coming->num_slices, size[0], size[1], count};
    LR_TRY(gl_texture_upload(coming->texture, &box, coming->image->values + coming->num_slices * slice));
    coming->num_slices += count;
    if (coming->num_slices == size[2]) {
        draw->images[which] = coming->texture;
        draw->changes[which]++;
        *coming = (struct draw_coming){0};
    }
    return LR_OK;
}

lr_status draw_begin_image(struct draw *draw, enum draw_image which, const lr_image *image, double largest)
{
    forget_image(draw, which);
    struct gl_texture *texture = make_texture(draw, which, &image->grid);
    if (texture == NULL) return LR_FAILED;
    draw->coming[which] = (struct draw_coming){.texture = texture, .image = image};
    draw->grids[which] = image->grid;
    draw->highest[which] = (float)largest;
    return upload_piece(draw, which);
}

void draw_advance(struct draw *draw)
{
    for (int k = 0; k < DRAW_NUM_IMAGES; k++) {
        if (draw->coming[k].texture == NULL) continue;
        if (upload_piece(draw, (enum draw_image)k) != LR_OK) forget_image(draw, (enum draw_image)k);
        break; /* only one piece is uploaded in each frame */
    }
}

void draw_lend_image(struct draw *draw, enum draw_image which, struct gl_texture *texture, const lr_grid *grid,
                     double highest)
{
    forget_image(draw, which);
    draw->images[which] = texture;
    draw->is_lent[which] = texture != NULL;
    draw->grids[which] = *grid;
    draw->highest[which] = (float)highest;
}

const lr_grid *draw_get_grid(const struct draw *draw, enum draw_image which)
{
    return draw->images[which] != NULL || draw->coming[which].texture != NULL ? &draw->grids[which] : NULL;
}

double draw_get_voxel(const struct draw *draw, enum draw_image which, const int voxel[3])
{
    const struct gl_texture *texture = draw->images[which];
    const struct gl_box box = {voxel[0], voxel[1], voxel[2], 1, 1, 1};
    float value = NAN;
    for (int k = 0; texture != NULL && k < 3; k++)
        if (voxel[k] < 0 || voxel[k] >= draw->grids[which].size[k]) return NAN;
    return texture != NULL && gl_texture_read(texture, &box, &value) == LR_OK ? (double)value : NAN;
}

lr_colour draw_tube_colour(double t)
{
    const double light = 0.4 + 0.6 * fmin(fmax(t, 0.0), 1.0);
    return (lr_colour){(uint8_t)(255.0 * light), (uint8_t)(64.0 * light), (uint8_t)(200.0 * light)};
}

/* --- pictures of panels --- */

lr_status draw_set_picture(struct gl_texture **texture, struct gl_context *ctx, const char *label, const int size[2],
                           const uint8_t *texels)
{
    const struct gl_texture *old = *texture;
    if (old == NULL || old->size[0] != size[0] || old->size[1] != size[1]) {
        gl_texture_destroy(*texture);
        *texture = gl_texture_create(
            ctx, &(struct gl_texture_params){.label = label, .format = GL_RGBA8, .width = size[0], .height = size[1]});
    }
    return *texture != NULL ? gl_texture_upload(*texture, NULL, texels) : LR_FAILED;
}

/* --- lines --- */

lr_status draw_set_lines(struct draw *draw, enum draw_lines which, const struct draw_line *lines, int count)
{
    gl_buffer_destroy(draw->lines[which]);
    draw->lines[which] = NULL;
    draw->num_lines[which] = 0;
    if (count == 0) return LR_OK;
    draw->lines[which] = gl_data_buffer(draw->ctx, "lines", count * (int64_t)sizeof(*lines), lines);
    if (draw->lines[which] == NULL) return LR_FAILED;
    draw->num_lines[which] = count;
    return LR_OK;
}

/* --- the grid, the axes and the cursor --- */

static const uint32_t grid_colour = 0xc8c8c890, cursor_colour = 0xffd24dff;
/* Colours that colour-blind people can also distinguish: vermilion, bluish green, blue (Okabe and Ito 2008). */
const uint32_t draw_axis_colours[3] = {0xe0643cff, 0x22b384ff, 0x4f9be8ff};

static struct draw_line line_between(const double from[3], const double to[3], uint32_t colour)
{
    return (struct draw_line){.from = {(float)from[0], (float)from[1], (float)from[2]},
                              .to = {(float)to[0], (float)to[1], (float)to[2]},
                              .colour = colour};
}

lr_status draw_set_grid(struct draw *draw, const lr_grid *grid)
{
    struct draw_line lines[12];
    double ends[2][3];
    int count = 0;
    for (int k = 0; k < 3; k++) {
        ends[0][k] = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
        ends[1][k] = ends[0][k] + grid->size[k] * grid->voxel_mm[k];
    }
    for (int axis = 0; axis < 3; axis++) {
        for (int corner = 0; corner < 4; corner++) {
            double from[3], to[3];
            from[axis] = ends[0][axis];
            to[axis] = ends[1][axis];
            from[(axis + 1) % 3] = to[(axis + 1) % 3] = ends[corner & 1][(axis + 1) % 3];
            from[(axis + 2) % 3] = to[(axis + 2) % 3] = ends[corner >> 1][(axis + 2) % 3];
            lines[count++] = line_between(from, to, grid_colour);
        }
    }
    return draw_set_lines(draw, DRAW_GRID, lines, grid->size[0] > 0 ? count : 0);
}

lr_status draw_set_cross(struct draw *draw, enum draw_lines which, const double point_mm[3], double length_mm)
{
    const double ends_mm[2] = {which == DRAW_AXES ? 0.0 : -length_mm, length_mm};
    struct draw_line lines[3];
    for (int axis = 0; axis < 3; axis++) {
        double ends[2][3];
        for (int n = 0; n < 2; n++) {
            memcpy(ends[n], point_mm, sizeof(ends[n]));
            ends[n][axis] += ends_mm[n];
        }
        lines[axis] = line_between(ends[0], ends[1], which == DRAW_AXES ? draw_axis_colours[axis] : cursor_colour);
    }
    return draw_set_lines(draw, which, lines, 3);
}

/* --- drawing --- */

/* Memory layout of the data that viewer/view.glsl reads. */
struct view_uniforms {
    float clip_of_world[16], eye[4], low_mm[4], high_mm[4], overlay[4];
    int32_t shown[4];
    float steps[4];
    float other_low_mm[4], other_high_mm[4], region_mm[4], region_half_mm[4], mixing[4];
    int32_t style[4];
};

/* Length of a step along a ray of the volume, in voxels. */
static const double voxels_per_step = 0.75;

/* Optical depth along the longest side of the image if all voxels have the largest value. The activity then looks
 * solid, and the mu-map looks like haze. */
static const double solid = 30.0, haze = 3.0;

/* --- passes --- */

struct frame {
    struct gl_target *target;
    int viewport[4];
    struct view_uniforms uniforms;
};

static lr_status run_pass(struct draw *draw, const struct frame *frame, struct gl_pass *pass)
{
    pass->target = frame->target;
    memcpy(pass->viewport, frame->viewport, sizeof(pass->viewport));
    pass->uniforms = &frame->uniforms;
    pass->uniform_bytes = sizeof(frame->uniforms);
    pass->instances = pass->instances == 0 ? 1 : pass->instances;
    return gl_pass_run(draw->ctx, pass);
}

static lr_status draw_group(struct draw *draw, const struct frame *frame, enum draw_lines which)
{
    struct gl_pass pass = {
        .label = "lines",
        .program = draw->programs[DRAW_LINES],
        .buffers = {{.buffer = draw->lines[which]}},
        .blending = GL_BLENDING_OVER,
        .depth_test = which < DRAW_LOR,
        .primitive = GL_LINES,
        .vertices = 2 * draw->num_lines[which],
    };
    return run_pass(draw, frame, &pass);
}

static const struct gl_texture *image_or_empty(const struct draw *draw, enum draw_image which)
{
    return draw->images[which] != NULL ? draw->images[which] : draw->empty;
}

/* The box of an image, to its outer faces. */
static void find_box(const lr_grid *grid, float low_mm[3], float high_mm[3])
{
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
        low_mm[k] = (float)low;
        high_mm[k] = (float)(low + grid->size[k] * grid->voxel_mm[k]);
    }
}

/* Clears the viewport and returns the parameters that all passes of a picture share. */
static struct frame begin_frame(struct draw *draw, struct gl_target *target, const struct draw_params *params)
{
    struct gl_clear clear = {.colours = {{.f = {0.055f, 0.06f, 0.075f, 1.0f}}}, .depth = 1.0f};
    const struct draw_slices *slices = &params->slices;
    const struct draw_region *region = &slices->region;
    struct frame frame = {.target = target, .uniforms.shown = {[3] = params->hovered_module}};
    struct view_uniforms *uniforms = &frame.uniforms;
    memcpy(uniforms->clip_of_world, params->view->clip_of_world, sizeof(uniforms->clip_of_world));
    memcpy(uniforms->eye, params->view->eye_mm, sizeof(params->view->eye_mm));
    find_box(&draw->grids[slices->image], uniforms->low_mm, uniforms->high_mm);
    find_box(&draw->grids[slices->second], uniforms->other_low_mm, uniforms->other_high_mm);
    for (int k = 0; k < 3; k++) {
        uniforms->mixing[1] = fmaxf(uniforms->mixing[1], (uniforms->high_mm[k] - uniforms->low_mm[k]) / 8.0f);
        uniforms->overlay[1 + k] = (float)slices->at_mm[k];
        uniforms->region_mm[k] = (float)region->middle_mm[k];
        uniforms->region_half_mm[k] = (float)region->half_mm[k];
    }
    uniforms->low_mm[3] = (float)slices->low;
    uniforms->high_mm[3] = (float)slices->high;
    uniforms->overlay[0] = draw->images[DRAW_TUBE] != NULL && slices->image != DRAW_TUBE && !params->hides_lors
                               ? (float)slices->overlay_high
                               : 0.0f;
    uniforms->other_low_mm[3] = (float)params->second_range[0];
    uniforms->other_high_mm[3] = (float)params->second_range[1];
    uniforms->region_mm[3] = (float)region->range[0];
    uniforms->region_half_mm[3] = (float)region->range[1];
    uniforms->mixing[0] = (float)slices->opacity;
    uniforms->style[0] = draw->images[slices->second] != NULL ? (int32_t)slices->mix : 0;
    uniforms->style[1] = slices->is_smooth;
    uniforms->style[3] = (int32_t)region->shape;
    memcpy(frame.viewport, params->viewport, sizeof(frame.viewport));
    memcpy(clear.rect, params->viewport, sizeof(clear.rect));
    gl_target_clear(target, &clear);
    return frame;
}

static lr_status draw_slice(struct draw *draw, struct frame *frame, const struct draw_slices *slices, int axis)
{
    const bool diverges = slices->mix == DRAW_MIX_DIFFERENCE || slices->mix == DRAW_MIX_RATIO;
    struct gl_pass pass = {
        .label = "slice",
        .program = draw->programs[DRAW_SLICE],
        .textures = {draw->maps[slices->colours], image_or_empty(draw, slices->image), image_or_empty(draw, DRAW_TUBE),
                     draw->maps[DRAW_NUM_MAPS], image_or_empty(draw, slices->second),
                     draw->maps[diverges ? LR_COLOURS_DIVERGING : slices->second_colours]},
        .depth_test = true,
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
    };
    frame->uniforms.shown[0] = axis;
    return run_pass(draw, frame, &pass);
}

lr_status draw_pane(struct draw *draw, struct gl_target *target, const struct draw_params *params, int axis)
{
    struct frame frame = begin_frame(draw, target, params);
    frame.uniforms.style[2] = params->slices.is_projected;
    if (draw->images[params->slices.image] != NULL) LR_TRY(draw_slice(draw, &frame, &params->slices, axis));
    return params->hides_lors ? LR_OK : draw_group(draw, &frame, DRAW_LOR);
}

lr_status draw_scene(struct draw *draw, struct gl_target *target, const struct draw_params *params)
{
    const struct draw_slices *slices = &params->slices;
    const lr_grid *grid = &draw->grids[slices->image];
    const bool has_image = draw->images[slices->image] != NULL;
    struct frame frame = begin_frame(draw, target, params);
    struct view_uniforms *uniforms = &frame.uniforms;
    if (draw->num_modules > 0 && !params->hides_scanner) {
        struct gl_pass pass = {
            .label = "crystals",
            .program = draw->programs[DRAW_CRYSTALS],
            .buffers = {[DRAW_BIND_MODULES] = {.buffer = draw->modules},
                        [DRAW_BIND_COLOURS] = {.buffer = draw->colours},
                        [DRAW_BIND_VALUES] = {.buffer = draw->values}},
            .textures = {draw->maps[LR_COLOURS_PERCEPTUAL]},
            .depth_test = true,
            .primitive = GL_TRIANGLE_STRIP,
            .vertices = 4,
            .instances = draw->num_modules,
        };
        LR_TRY(run_pass(draw, &frame, &pass));
        pass.label = "modules";
        pass.program = draw->programs[DRAW_BOXES];
        pass.primitive = GL_LINES;
        pass.vertices = 24;
        LR_TRY(run_pass(draw, &frame, &pass));
    }
    for (int axis = 0; axis < 3; axis++)
        if (slices->is_shown[axis] && has_image) LR_TRY(draw_slice(draw, &frame, slices, axis));
    for (int k = 0; k < DRAW_LOR; k++)
        if (k != DRAW_LORS || !params->hides_lors) LR_TRY(draw_group(draw, &frame, (enum draw_lines)k));
    if (params->has_volume && has_image) {
        double size = 0.0, voxel = HUGE_VAL;
        for (int k = 0; k < 3; k++) {
            size = fmax(size, grid->size[k] * grid->voxel_mm[k]);
            voxel = fmin(voxel, grid->voxel_mm[k]);
        }
        uniforms->steps[0] = (float)(voxels_per_step * voxel);
        uniforms->steps[1] = (float)(solid / size);
        uniforms->steps[2] = (float)(haze / size);
        uniforms->steps[3] = draw->images[DRAW_MU] != NULL ? draw->highest[DRAW_MU] : 0.0f;
        struct gl_pass pass = {
            .label = "volume",
            .program = draw->programs[DRAW_VOLUME],
            .textures = {draw->maps[LR_COLOURS_PERCEPTUAL], image_or_empty(draw, slices->image),
                         image_or_empty(draw, DRAW_MU)},
            .blending = GL_BLENDING_OVER,
            .primitive = GL_TRIANGLES,
            .vertices = 36,
        };
        LR_TRY(run_pass(draw, &frame, &pass));
    }
    if (!params->hides_lors) LR_TRY(draw_group(draw, &frame, DRAW_LOR));
    return draw_group(draw, &frame, DRAW_CURSOR);
}
