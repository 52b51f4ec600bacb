/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/exact.h"

#include "base/log.h"
#include "base/mem.h"
#include "listmode/hull.h"
#include "listmode/line.h"

#include <math.h>
#include <stdlib.h>

_Static_assert(sizeof(lr_cuda_list_module) == sizeof(struct lr_listmode_module), "one layout");

/* Points along an axis, of which voxels are found in single precision. */
enum { MOST_POINTS = 1 << 21 };

static lr_status check(const struct lr_listmode_model *model, const lr_log *log)
{
    for (int k = 0; k < 3; k++) {
        if (model->grid.size[k] > MOST_POINTS / model->samples[k]) {
            return lr_error(log, LR_USAGE,
                            "exact elements on a CUDA device have at most %d sample points along "
                            "an axis, and %d voxels have %d each: take fewer samples",
                            MOST_POINTS, model->grid.size[k], model->samples[k]);
        }
    }
    return LR_OK;
}

/* Bounds of elements, with a hundredth for rounding. */
static void find_bounds(lr_cuda_list_exact *exact, const struct lr_listmode_model *model)
{
    const double *edge = model->grid.voxel_mm;
    double area = 0, radius = 0;
    for (int m = 0; m < model->scanner->num_modules; m++) {
        const double *face = model->scanner->modules[m].face_mm;
        area = fmax(area, face[0] * face[1]);
        radius = fmax(radius, 0.5 * hypot(face[0], face[1]));
    }
    exact->face = (float)(1.01 * area * 0.15915494309189535);
    exact->radius_mm = (float)radius;
    exact->per_edge = (float)(1.0 / (LR_LISTMODE_HELD * fmin(edge[0], fmin(edge[1], edge[2]))));
}

static int32_t *find_modules(const lr_scanner *scanner, const lr_log *log)
{
    int32_t *module_of = lr_alloc(scanner->num_crystals, sizeof(*module_of), "modules of crystals", log);
    for (int c = 0; module_of != NULL && c < scanner->num_crystals; c++)
        module_of[c] = lr_scanner_module_of(scanner, c);
    return module_of;
}

lr_status lr_cuda_exact_init(lr_cuda_list_exact *exact, const struct lr_listmode_backend_params *params)
{
    const struct lr_listmode_model *model = params->model;
    *exact = (lr_cuda_list_exact){0};
    if (model->kernel != LR_LISTMODE_EXACT) return LR_OK;
    LR_TRY(check(model, params->log));
    exact->is_leaning = lr_listmode_is_leaning(model->scanner);
    exact->reach_mm = model->reach_mm;
    find_bounds(exact, model);
    exact->module_of = find_modules(model->scanner, params->log);
    exact->modules = (const lr_cuda_list_module *)(const void *)lr_listmode_modules(model->scanner, params->log);
    return exact->module_of != NULL && exact->modules != NULL ? LR_OK : LR_FAILED;
}

void lr_cuda_exact_finish(lr_cuda_list_exact *exact)
{
    free((void *)(uintptr_t)exact->module_of);
    free((void *)(uintptr_t)exact->modules);
    *exact = (lr_cuda_list_exact){0};
}

lr_status lr_cuda_exact_copy(lr_cuda_list_exact *to, const lr_cuda_list_exact *from, const lr_scanner *scanner,
                             struct lr_cuda_list_memory *memory)
{
    *to = *from;
    if (from->modules == NULL) return LR_OK;
    to->modules = lr_cuda_list_allocate(
        memory,
        &(struct lr_cuda_list_block){"modules", from->modules, scanner->num_modules * (int64_t)sizeof(*from->modules)});
    to->module_of = lr_cuda_list_allocate(
        memory, &(struct lr_cuda_list_block){"modules of crystals", from->module_of,
                                             scanner->num_crystals * (int64_t)sizeof(*from->module_of)});
    return to->modules != NULL && to->module_of != NULL ? LR_OK : LR_FAILED;
}
