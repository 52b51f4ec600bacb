/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "viewer/frame/draw_private.h"

#include <math.h>
#include <string.h>

/* As viewer/view.glsl reads it. */
struct view_uniforms {
    float clip_of_world[16], eye[4], low_mm[4], high_mm[4], overlay[4];
    int32_t shown[4];
    float steps[4];
};

/* Steps along a line of sight, in voxels, and what an image's largest value stops on the way of a
 * tenth of its size: as much as makes it solid. */
static const double voxels_per_step = 0.75, solid = 30.0, haze = 3.0;

static void set_grid(struct view_uniforms *uniforms, const lr_grid *grid)
{
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
        uniforms->low_mm[k] = (float)low;
        uniforms->high_mm[k] = (float)(low + grid->size[k] * grid->voxel_mm[k]);
    }
}

static struct view_uniforms make_uniforms(const struct draw *draw, const struct draw_params *params)
{
    const struct draw_slices *slices = &params->slices;
    struct view_uniforms uniforms = {.shown = {[3] = params->hovered_module}};
    if (params->view != NULL) {
        memcpy(uniforms.clip_of_world, params->view->clip_of_world, sizeof(uniforms.clip_of_world));
        memcpy(uniforms.eye, params->view->eye_mm, sizeof(params->view->eye_mm));
    }
    set_grid(&uniforms, &draw->grids[slices->image]);
    uniforms.low_mm[3] = (float)slices->low;
    uniforms.high_mm[3] = (float)slices->high;
    uniforms.overlay[0] =
        draw->images[DRAW_TUBE] != NULL && slices->image != DRAW_TUBE ? (float)slices->overlay_high : 0.0f;
    for (int k = 0; k < 3; k++) uniforms.overlay[1 + k] = (float)slices->at_mm[k];
    return uniforms;
}

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

static lr_status draw_modules(struct draw *draw, const struct frame *frame)
{
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
    LR_TRY(run_pass(draw, frame, &pass));
    pass.label = "modules";
    pass.program = draw->programs[DRAW_BOXES];
    pass.primitive = GL_LINES;
    pass.vertices = 24;
    return run_pass(draw, frame, &pass);
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

static const struct gl_texture *or_nothing(const struct draw *draw, enum draw_image which)
{
    return draw->images[which] != NULL ? draw->images[which] : draw->nothing;
}

static struct gl_pass slice_pass(const struct draw *draw, const struct draw_slices *slices)
{
    return (struct gl_pass){
        .label = "slice",
        .program = draw->programs[DRAW_SLICE],
        .textures = {draw->maps[slices->colours], or_nothing(draw, slices->image), or_nothing(draw, DRAW_TUBE),
                     draw->maps[LR_COLOURS_PERCEPTUAL]},
        .primitive = GL_TRIANGLE_STRIP,
        .vertices = 4,
    };
}

static lr_status draw_slices(struct draw *draw, struct frame *frame, const struct draw_slices *slices)
{
    for (int axis = 0; axis < 3; axis++) {
        if (slices->is_shown[axis] && draw->images[slices->image] != NULL) {
            frame->uniforms.shown[0] = axis;
            struct gl_pass pass = slice_pass(draw, slices);
            pass.depth_test = true;
            LR_TRY(run_pass(draw, frame, &pass));
        }
    }
    return LR_OK;
}

static lr_status draw_volume(struct draw *draw, struct frame *frame, const struct draw_params *params)
{
    const struct draw_slices *slices = &params->slices;
    const lr_grid *grid = &draw->grids[slices->image];
    struct view_uniforms *uniforms = &frame->uniforms;
    double size = 0.0, voxel = HUGE_VAL;
    for (int k = 0; k < 3; k++) {
        size = fmax(size, grid->size[k] * grid->voxel_mm[k]);
        voxel = fmin(voxel, grid->voxel_mm[k]);
    }
    uniforms->high_mm[3] = (float)params->volume_high;
    uniforms->steps[0] = (float)(voxels_per_step * voxel);
    uniforms->steps[1] = (float)(solid / size);
    uniforms->steps[2] = (float)(haze / size);
    uniforms->steps[3] = draw->images[DRAW_MU] != NULL ? draw->highest[DRAW_MU] : 0.0f;
    struct gl_pass pass = {
        .label = "volume",
        .program = draw->programs[DRAW_VOLUME],
        .textures = {draw->maps[LR_COLOURS_PERCEPTUAL], or_nothing(draw, slices->image), or_nothing(draw, DRAW_MU)},
        .blending = GL_BLENDING_OVER,
        .primitive = GL_TRIANGLES,
        .vertices = 36,
    };
    return run_pass(draw, frame, &pass);
}

lr_status draw_scene(struct draw *draw, struct gl_target *target, const struct draw_params *params)
{
    const struct gl_clear panels = {.colours = {{.f = {0.09f, 0.10f, 0.12f, 1.0f}}}};
    struct gl_clear clear = {.colours = {{.f = {0.055f, 0.06f, 0.075f, 1.0f}}}, .depth = 1.0f};
    struct frame frame = {.target = target, .uniforms = make_uniforms(draw, params)};
    memcpy(frame.viewport, params->viewport, sizeof(frame.viewport));
    memcpy(clear.rect, params->viewport, sizeof(clear.rect));
    gl_target_clear(target, &panels);
    gl_target_clear(target, &clear);
    if (draw->num_modules > 0 && !params->hides_scanner) LR_TRY(draw_modules(draw, &frame));
    LR_TRY(draw_slices(draw, &frame, &params->slices));
    for (int k = 0; k < DRAW_LOR; k++)
        if (k != DRAW_LORS || !params->hides_lors) LR_TRY(draw_group(draw, &frame, (enum draw_lines)k));
    if (params->has_volume && draw->images[params->slices.image] != NULL) LR_TRY(draw_volume(draw, &frame, params));
    if (!params->hides_lors) LR_TRY(draw_group(draw, &frame, DRAW_LOR));
    return draw_group(draw, &frame, DRAW_CURSOR);
}

lr_status draw_slice(struct draw *draw, struct gl_target *target, const struct draw_slices *slices, int axis)
{
    const struct draw_params params = {.slices = *slices, .hovered_module = -1};
    struct frame frame = {.target = target, .uniforms = make_uniforms(draw, &params)};
    struct gl_pass pass = slice_pass(draw, slices);
    frame.uniforms.shown[0] = axis;
    pass.program = draw->programs[DRAW_FLAT_SLICE];
    return run_pass(draw, &frame, &pass);
}
