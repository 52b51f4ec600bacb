/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/scene.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/vectors.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* `struct Module` of shaders/correspondence/scene.glsl. */
struct scene_module {
    float centre[3], pitch_u;
    float rest[3], pitch_v;
    float u[3], face_u;
    float v[3], face_v;
    float normal[3], unused;
    int32_t crystals[2], first_crystal, num_crystals;
};
_Static_assert(sizeof(struct scene_module) == 96, "the shaders' layout");

/* `struct Pair` of shaders/correspondence/lor.glsl. */
struct scene_pair {
    uint32_t first_lor, mask;
};

/* `struct MaskEntry` of shaders/correspondence/coincidence.glsl. */
struct scene_mask {
    uint32_t kind, offset_a, offset_b, unused;
};

lr_status lr_scene_set_window(struct lr_scene *scene, const struct lr_pair_window *window)
{
    const lr_lors *lors = scene->lors;
    const int64_t entries = (int64_t)scene->scanner->num_modules * scene->scanner->num_modules;
    if (scene->window.pairs == NULL && window->pairs == NULL && scene->window.begin == window->begin &&
        scene->window.end == window->end)
        return LR_OK;
    struct scene_pair *pairs = lr_alloc(entries, sizeof(*pairs), "the pairs of modules", gl_context_log(scene->ctx));
    if (pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < entries; k++) pairs[k] = (struct scene_pair){.mask = LR_NONE};
    uint32_t first_lor = 0;
    for (int64_t k = window->begin; k < window->end; k++) {
        const int64_t pair = lr_pair_window_pair(window, k);
        const int64_t i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const struct scene_pair entry = {.first_lor = first_lor, .mask = (uint32_t)pair};
        first_lor += (uint32_t)lr_pair_size(lors, pair);
        pairs[i * scene->scanner->num_modules + j] = entry;
        pairs[j * scene->scanner->num_modules + i] = entry;
    }
    const lr_status status = gl_buffer_upload(scene->pairs, 0, entries * (int64_t)sizeof(*pairs), pairs);
    free(pairs);
    scene->window = status == LR_OK ? *window : (struct lr_pair_window){0};
    return status;
}

lr_status lr_scene_masks_init(struct lr_scene_masks *masks, struct gl_context *ctx, const lr_lors *lors)
{
    const struct lr_coincidence_masks *own = lors->masks;
    struct scene_mask *entries = lr_alloc(own->num_pairs, sizeof(*entries), "coincidence masks", gl_context_log(ctx));
    if (entries == NULL) return LR_FAILED;
    for (int64_t k = 0; k < own->num_pairs; k++) {
        const struct lr_pair_mask *mask = &own->pairs[k];
        entries[k] = (struct scene_mask){mask->kind, mask->offset_a, mask->offset_b, 0};
        masks->any = masks->any || mask->kind != LR_MASK_ALL;
    }
    masks->entries = gl_data_buffer(ctx, "coincidence masks", own->num_pairs * (int64_t)sizeof(*entries), entries);
    free(entries);
    masks->words =
        gl_data_buffer(ctx, "coincidence mask words", own->num_words * (int64_t)sizeof(*own->words), own->words);
    return masks->entries != NULL && masks->words != NULL ? LR_OK : LR_FAILED;
}

static lr_status upload_scene(struct lr_scene *scene, const struct lr_scene_absorption *absorption)
{
    const lr_scanner *scanner = scene->scanner;
    const lr_log *log = gl_context_log(scene->ctx);
    const int num_modules = scanner->num_modules;
    struct scene_module *modules = lr_alloc(num_modules, sizeof(*modules), "the scanner's modules", log);
    for (int m = 0; modules != NULL && m < num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        struct scene_module *out = &modules[m];
        *out = (struct scene_module){
            .pitch_u = (float)module->pitch_mm[0],
            .pitch_v = (float)module->pitch_mm[1],
            .face_u = (float)module->face_mm[0],
            .face_v = (float)module->face_mm[1],
            .crystals = {module->crystals[0], module->crystals[1]},
            .first_crystal = scanner->first_crystal[m],
            .num_crystals = module->crystals[0] * module->crystals[1],
        };
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 3; k++) {
            lr_split_float(centre[k], &out->centre[k], &out->rest[k]);
            out->u[k] = (float)module->u[k];
            out->v[k] = (float)module->v[k];
            out->normal[k] = (float)module->normal[k];
        }
    }
    if (modules != NULL)
        scene->modules = gl_data_buffer(scene->ctx, "modules", num_modules * (int64_t)sizeof(*modules), modules);
    free(modules);

    uint32_t *module_of = lr_alloc(scanner->num_crystals, sizeof(*module_of), "the modules of crystals", log);
    for (int m = 0; module_of != NULL && m < num_modules; m++)
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) module_of[c] = (uint32_t)m;
    if (module_of != NULL)
        scene->crystal_module = gl_data_buffer(scene->ctx, "module of each crystal",
                                               scanner->num_crystals * (int64_t)sizeof(*module_of), module_of);
    free(module_of);

    const int64_t entries = (int64_t)num_modules * num_modules;
    scene->pairs = gl_data_buffer(scene->ctx, "pairs", entries * (int64_t)sizeof(struct scene_pair), NULL);
    if (!scene->modules || !scene->crystal_module || !scene->pairs) return LR_FAILED;
    const struct lr_pair_window all = lr_pair_window_all(scene->lors);
    LR_TRY(lr_scene_set_window(scene, &all));

    LR_TRY(lr_scene_masks_init(&scene->masks, scene->ctx, scene->lors));

    const lr_image *mu = absorption->mu;
    if (mu == NULL) return LR_OK;
    scene->mu_steps = absorption->steps;
    for (int k = 0; k < 3; k++) {
        scene->mu_origin_mm[k] = (float)mu->grid.origin_mm[k];
        scene->mu_per_mm[k] = (float)(1.0 / mu->grid.voxel_mm[k]);
    }
    scene->mu = gl_texture_create(scene->ctx, &(struct gl_texture_params){
                                                  .label = "attenuation map",
                                                  .target = GL_TEXTURE_3D,
                                                  .format = GL_R32F,
                                                  .width = mu->grid.size[0],
                                                  .height = mu->grid.size[1],
                                                  .depth = mu->grid.size[2],
                                              });
    return scene->mu ? gl_texture_upload(scene->mu, NULL, mu->values) : LR_FAILED;
}

lr_status lr_scene_init(struct lr_scene *scene, struct gl_context *ctx, const lr_lors *lors,
                        const struct lr_scene_absorption *absorption)
{
    *scene = (struct lr_scene){.ctx = ctx, .scanner = lors->scanner, .lors = lors};
    const lr_status status = upload_scene(scene, absorption);
    if (status != LR_OK) lr_scene_finish(scene);
    return status;
}

void lr_scene_finish(struct lr_scene *scene)
{
    gl_texture_destroy(scene->mu);
    gl_buffers_destroy(scene->masks.words, scene->masks.entries, scene->pairs, scene->crystal_module, scene->modules);
    *scene = (struct lr_scene){0};
}

void lr_scene_bind(const struct lr_scene *scene, struct gl_pass *pass)
{
    gl_pass_bind(pass, {LR_BIND_MODULES, scene->modules}, {LR_BIND_CRYSTAL_MODULE, scene->crystal_module},
                 {LR_BIND_PAIRS, scene->pairs}, {LR_BIND_MASK_ENTRIES, scene->masks.entries},
                 {LR_BIND_MASK_WORDS, scene->masks.words});
    pass->textures[LR_UNIT_MU] = scene->mu;
}

void lr_rays_define_init(struct lr_rays_define *define, int rays)
{
    *define = (struct lr_rays_define){0};
    snprintf(define->text, sizeof(define->text), "%d", rays);
    define->defines[0] = (struct gl_define){"RAYS", define->text};
}

/* --- boxes of crystals --- */

/* An upper bound of the relative rounding errors of lengths. Smaller gaps count as 0. Numbers are lowered by this much
 * before they are rounded up. */
static const double rounding = 1e-9;

static struct lr_penetration_box box_of(const lr_module *module, int rays)
{
    const double pitch = fmax(module->pitch_mm[0], module->pitch_mm[1]);
    struct lr_penetration_box box = {
        .depth_strata = (uint32_t)fmax(1, ceil(rays * module->depth_mm / pitch - rounding)),
        .depth_mm = (float)module->depth_mm,
    };
    for (int axis = 0; axis < 2; axis++) {
        const double gap = module->pitch_mm[axis] - module->face_mm[axis];
        if (gap > rounding * module->pitch_mm[axis])
            box.gap_strata[axis] = (uint32_t)ceil(rays * gap / module->face_mm[axis] - rounding);
    }
    return box;
}

struct gl_buffer *lr_penetration_boxes(struct gl_context *ctx, const lr_scanner *scanner, int rays)
{
    struct lr_penetration_box *boxes =
        lr_alloc(scanner->num_modules, sizeof(*boxes), "the modules' boxes", gl_context_log(ctx));
    if (boxes == NULL) return NULL;
    for (int m = 0; m < scanner->num_modules; m++) {
        boxes[m] = box_of(&scanner->modules[m], rays);
        boxes[m].mu_per_mm = (float)lr_module_mu_per_mm(scanner, m);
    }
    struct gl_buffer *buffer =
        gl_data_buffer(ctx, "boxes of modules", scanner->num_modules * (int64_t)sizeof(*boxes), boxes);
    free(boxes);
    return buffer;
}

int64_t lr_penetration_most_lines(const lr_scanner *scanner, int rays)
{
    int64_t most = 1;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const struct lr_penetration_box box = box_of(module, rays);
        int64_t count[3] = {0, 0, box.depth_strata};
        for (int axis = 0; axis < 2; axis++) {
            const int64_t gap = box.gap_strata[axis];
            count[axis] = module->crystals[axis] * (rays + gap) - gap;
        }
        const int64_t lines = count[0] * count[1] + count[1] * count[2] + count[2] * count[0];
        most = lines > most ? lines : most;
    }
    return most;
}
