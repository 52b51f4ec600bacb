/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/tube.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "viewer/study/operators.h"

#include <stdlib.h>

/* Points along each axis of a voxel; the profile is made from these points. */
enum { PARTS = 4 };

/* Largest number of planes in a profile. */
enum { MOST_BINS = 4096 };

struct tube_task {
    struct tube_result result; /* first, so that task_runner.result points to it */
    struct study_view study;   /* a reference is held */
    const char *backend;
    lr_image *image;
    float *weight, *kernel;
    int64_t *voxels; /* [num_voxels] voxels that the tube may reach */
    int64_t num_voxels;
    double middle_mm[3], direction[3]; /* middle and direction of the line, from the first end to the second */
};

/* --- geometry --- */

void tube_ends(const lr_scanner *scanner, const struct tube_crystal crystals[2], double ends_mm[2][3])
{
    for (int k = 0; k < 2; k++) {
        const struct tube_crystal *crystal = &crystals[k];
        const lr_module *module = &scanner->modules[crystal->module];
        const double u = (crystal->p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
        const double v = (crystal->q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
        lr_scanner_detection_centre(scanner, crystal->module, ends_mm[k]);
        vec_add_scaled(ends_mm[k], u, module->u, ends_mm[k]);
        vec_add_scaled(ends_mm[k], v, module->v, ends_mm[k]);
    }
}

/* The number of a crystal in the whole scanner. */
static int number_of(const lr_scanner *scanner, const struct tube_crystal *crystal)
{
    return scanner->first_crystal[crystal->module] + crystal->q * scanner->modules[crystal->module].crystals[0] +
           crystal->p;
}

lr_status tube_check(const struct study_view *study, const struct tube_crystal crystals[2], int64_t *lor,
                     const lr_log *log)
{
    for (int k = 0; k < 2; k++) {
        const struct tube_crystal *crystal = &crystals[k];
        const int module = crystal->module;
        LR_TRY(study_check_module(study, module, log));
        const int *size = study->scanner->modules[module].crystals;
        if (crystal->p < 0 || crystal->p >= size[0] || crystal->q < 0 || crystal->q >= size[1]) {
            return lr_error(log, LR_USAGE, "module %d has no crystal (%d, %d): p goes to %d, q to %d", module,
                            crystal->p, crystal->q, size[0] - 1, size[1] - 1);
        }
    }
    if (crystals[0].module == crystals[1].module) {
        return lr_error(log, LR_USAGE, "both crystals are in the same module, %d: choose two modules",
                        crystals[0].module);
    }
    *lor =
        lr_lors_number(study->lors, number_of(study->scanner, &crystals[0]), number_of(study->scanner, &crystals[1]));
    if (*lor < 0) {
        return lr_error(log, LR_USAGE, "modules %d and %d are not in coincidence", crystals[0].module,
                        crystals[1].module);
    }
    if (!lr_lors_in_coincidence(study->lors, *lor))
        return lr_error(log, LR_USAGE, "the coincidence rules of the scanner exclude this LOR: its elements are 0");
    return LR_OK;
}

/* --- the task --- */

static void destroy(void *object)
{
    struct tube_task *task = object;
    lr_image_destroy(task->image);
    lr_free_all(task->weight, task->kernel, task->voxels);
    study_view_release(&task->study);
    free(task);
}

/* Takes a voxel's row. The row has at most one LOR. */
static lr_status take_row(void *user, const lr_row *row)
{
    struct tube_task *task = user;
    struct tube_result *result = &task->result;
    for (int64_t k = 0; k < row->count; k++) {
        task->image->values[row->row] = (float)row->probability[k];
        result->sum += row->probability[k];
        result->largest = fmax(result->largest, row->probability[k]);
    }
    result->num_voxels += row->count;
    return LR_OK;
}

/* Computes the LOR's elements: a column of the matrix. */
static lr_status run_lor(struct tube_task *task, const lr_log *log, const lr_progress *progress)
{
    struct tube_request *request = &task->result.request;
    lr_operator_params params = {.lors = task->study.lors,
                                 .grid = &task->study.grid,
                                 .backend = task->backend,
                                 .mode = request->mode,
                                 .rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0,
                                 .mu = task->study.mu,
                                 .store = LR_STORE_NO,
                                 .log = log,
                                 .progress = progress};
    lr_operator *op = NULL;

    /* Finds the voxels that the tube may reach. The distance between a line through both faces and the line between the
     * faces' centres is at most half a face's diagonal. */
    const lr_grid *grid = &task->study.grid;
    const int64_t total = lr_grid_num_voxels(grid);
    const struct lr_items items = {sizeof(*task->voxels), "a list of voxels", log};
    double radius_mm = 0;
    for (int k = 0; k < 2; k++) {
        const int module = request->crystals[k].module;
        const double *face_mm = task->study.scanner->modules[module].face_mm;
        radius_mm = fmax(radius_mm, 0.5 * hypot(face_mm[0], face_mm[1]));
    }
    const double reach_mm = radius_mm + 0.5 * vec_length(grid->voxel_mm);
    int64_t room = 0;
    for (int64_t row = 0; row < total; row++) {
        double from_middle[3], across[3];
        lr_grid_voxel_centre(grid, row, from_middle);
        vec_sub(from_middle, task->middle_mm, from_middle);
        vec_cross(from_middle, task->direction, across);
        if (!(vec_dot(across, across) <= reach_mm * reach_mm)) continue;
        LR_TRY(lr_grow(&task->voxels, &room, task->num_voxels + 1, &items));
        task->voxels[task->num_voxels++] = row;
    }

    if (request->samples > 0) lr_grid_split_samples(&task->study.grid, request->samples, params.samples);
    LR_TRY(operator_create(&params, &op));
    const lr_operator_info *info = lr_operator_get_info(op);
    request->rays = info->rays;
    request->samples = info->samples[0] * info->samples[1] * info->samples[2];

    const lr_selection part = {.lors = &task->result.lor, .num_lors = 1};
    const lr_row_choice choice = {.voxels = task->voxels, .num_voxels = task->num_voxels, .part = &part};
    const lr_row_sink sink = {take_row, task};
    const lr_status status = task->num_voxels > 0 ? lr_operator_rows_part(op, &choice, &sink) : LR_OK;
    lr_operator_destroy(op);
    return status;
}

/* Computes the elements of a list-mode event on the two crystals, and lists the voxels with nonzero elements. A device
 * is not used, because it would save no time for a single event. errors: LR_CANCELLED; those of lr_listmode_create,
 * logged. */
static lr_status run_event(struct tube_task *task, const lr_log *log, const lr_progress *progress)
{
    static const lr_listmode_kernel kernels[] = {
        [TUBE_TUBE] = LR_LISTMODE_TUBE, [TUBE_LINE] = LR_LISTMODE_LINE, [TUBE_EXACT] = LR_LISTMODE_EXACT};
    struct tube_result *result = &task->result;
    struct tube_request *request = &result->request;
    const lr_grid *grid = &task->study.grid;
    const lr_event line = {.crystals = {number_of(task->study.scanner, &request->crystals[0]),
                                        number_of(task->study.scanner, &request->crystals[1])},
                           .tof_mm = (float)request->tof_mm,
                           .weight = 1};
    const lr_events_info info = {.has_tof = true};
    const bool is_exact = request->kernel == TUBE_EXACT;
    lr_listmode_params params = {.lors = task->study.lors,
                                 .grid = grid,
                                 .events = &line,
                                 .count = 1,
                                 .info = request->has_tof ? &info : NULL,
                                 .kernel = kernels[request->kernel],
                                 .no_solid_angles = true,                 /* the tool shows lengths of lines */
                                 .backend = is_exact ? "auto" : "native", /* cpu if modules can hide each other */
                                 .log = log,
                                 .progress = progress};
    if (is_exact && request->samples > 0) lr_grid_split_samples(grid, request->samples, params.samples);
    LR_TRY(lr_progress_report(progress, "preparing the projector", 0, 1));
    lr_operator *op = lr_listmode_create(&params);
    if (op == NULL) return LR_FAILED;
    const int *points = lr_operator_get_info(op)->samples;
    request->samples = points[0] * points[1] * points[2];
    float one = 1;
    const lr_vector value = lr_vector_of_floats(&one, 1);
    lr_vector image = lr_image_vector(task->image);
    const lr_status status = lr_operator_back(op, NULL, &value, &image);
    lr_operator_destroy(op);
    LR_TRY(status);

    const struct lr_items items = {sizeof(*task->voxels), "a list of voxels", log};
    const int64_t total = lr_grid_num_voxels(grid);
    int64_t room = 0;
    for (int64_t row = 0; row < total; row++) {
        const double element = task->image->values[row];
        if (!(element > 0)) continue;
        LR_TRY(lr_grow(&task->voxels, &room, task->num_voxels + 1, &items));
        task->voxels[task->num_voxels++] = row;
        result->sum += element;
        result->largest = fmax(result->largest, element);
    }
    result->num_voxels = task->num_voxels;
    return LR_OK;
}

/* Computes the elements, and their profile along the line. */
static lr_status run(void *object, const lr_log *log, const lr_progress *progress)
{
    struct tube_task *task = object;
    task->result.image = task->image = lr_image_create(&task->study.grid, log);
    if (task->image == NULL) return LR_FAILED;
    const lr_grid *grid = &task->study.grid;
    struct tube_result *result = &task->result;
    const struct tube_request *request = &result->request;
    struct tube_profile *profile = &result->profile;
    LR_TRY(request->kernel != TUBE_LOR ? run_event(task, log, progress) : run_lor(task, log, progress));

    /* On both sides, the profile reaches the line's end or the grid's farthest corner, whichever is farther. */
    double half_mm = 0.5 * result->length_mm;
    for (int corner = 0; corner < 8; corner++) {
        double t = 0;
        for (int k = 0; k < 3; k++) {
            const double at = (corner >> k & 1) != 0 ? grid->size[k] - 0.5 : -0.5;
            t += task->direction[k] * (grid->origin_mm[k] + at * grid->voxel_mm[k] - task->middle_mm[k]);
        }
        half_mm = fmax(half_mm, fabs(t));
    }
    const double fine_mm = fmin(grid->voxel_mm[0], fmin(grid->voxel_mm[1], grid->voxel_mm[2]));
    profile->step_mm = fmax(fine_mm, 2 * half_mm / (MOST_BINS - 1));
    const int half = (int)ceil(half_mm / profile->step_mm);
    profile->count = 2 * half + 1; /* the line's middle is the centre of a bin */
    profile->first_mm = -half * profile->step_mm;
    profile->weight = task->weight = lr_alloc(profile->count, sizeof(*task->weight), "a profile", log);
    if (task->weight == NULL) return LR_FAILED;

    /* Each voxel's element is divided equally among points in the voxel, and each point adds its part to its plane.
     * The sum over all planes is therefore the sum of the elements. */
    for (int64_t n = 0; n < task->num_voxels; n++) {
        const int64_t row = task->voxels[n];
        const double share = task->image->values[row] / (double)(PARTS * PARTS * PARTS);
        lr_sample sample = {row, {PARTS, PARTS, PARTS}, 0};
        for (; share > 0 && sample.index < PARTS * PARTS * PARTS; sample.index++) {
            double point_mm[3], from_middle[3];
            lr_grid_sample_point(grid, &sample, point_mm);
            vec_sub(point_mm, task->middle_mm, from_middle);
            const double t = vec_dot(from_middle, task->direction);
            const int bin = (int)floor((t - profile->first_mm) / profile->step_mm + 0.5);
            task->weight[bin < 0 ? 0 : bin >= profile->count ? profile->count - 1 : bin] += (float)share;
        }
    }
    int peak = 0;
    for (int n = 1; n < profile->count; n++) peak = profile->weight[n] > profile->weight[peak] ? n : peak;
    result->peak_mm = profile->first_mm + peak * profile->step_mm;

    const double sigma = result->sigma_mm;
    const double centre_mm = request->kernel != TUBE_LOR && request->has_tof ? request->tof_mm : 0;
    if (!(sigma > 0)) return LR_OK;
    profile->kernel = task->kernel = lr_alloc(profile->count, sizeof(*task->kernel), "a profile", log);
    if (task->kernel == NULL) return LR_FAILED;
    for (int n = 0; n < profile->count; n++) {
        const double t = (profile->first_mm + n * profile->step_mm - centre_mm) / sigma;
        task->kernel[n] = (float)(exp(-0.5 * t * t) / (sigma * sqrt(2 * LR_PI)));
    }
    return LR_OK;
}

const struct task_kind tube_kind = {"computing the tube of response", run, destroy};

/* --- requests --- */

lr_status tube_ask(struct task_runner *runner, const struct study_view *study, const struct tube_request *request,
                   const lr_log *log)
{
    int64_t lor;
    LR_TRY(tube_check(study, request->crystals, &lor, log));
    struct tube_task *task = lr_alloc(1, sizeof(*task), "a tube of response", log);
    if (task == NULL) return LR_FAILED;
    struct tube_result *result = &task->result;
    task->study = study_view_hold(study);
    result->lor = lor;
    result->request = *request;
    result->request.backend = NULL; /* the text may be freed before the job ends */
    if (request->mode == LR_MODE_AUTO) result->request.mode = LR_MODE_EXACT;
    task->backend = backend_name(request->backend, study->mu != NULL ? "cpu" : "native");

    tube_ends(study->scanner, request->crystals, result->ends_mm);
    vec_sub(result->ends_mm[1], result->ends_mm[0], task->direction);
    vec_add_scaled(result->ends_mm[0], 0.5, task->direction, task->middle_mm);
    result->length_mm = vec_length(task->direction);
    for (int k = 0; k < 3; k++) task->direction[k] /= result->length_mm;

    const bool is_event = request->kernel != TUBE_LOR;
    const double tof_ps = study->scanner->tof_resolution_ps;
    const bool has_tof = !is_event || request->has_tof;
    result->has_mu = !is_event && study->mu != NULL;
    result->sigma_mm = has_tof ? tof_ps * LR_MM_PER_PS / LR_FWHM_PER_SIGMA : 0;
    task_runner_ask(runner, task);
    return LR_OK;
}
