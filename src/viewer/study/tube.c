/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/tube.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "viewer/study/operators.h"

#include <stdlib.h>

/* Half of light's speed: how far the annihilation moves for each picosecond of difference. */
#define HALF_LIGHT_MM_PER_PS 0.149896229

/* FWHM / sigma of a normal distribution, 2 sqrt(2 ln 2). */
#define FWHM_PER_SIGMA 2.3548200450309493

#define PI 3.14159265358979323846

/* Points of a voxel and axis that are sorted into the profile's planes. */
enum { PARTS = 4 };

/* The profile has no more planes than that. */
enum { MOST_BINS = 4096 };

struct tube_task {
    struct study_view study; /* held */
    struct tube_result result;
    const char *backend;
    lr_image *image;
    float *weight, *kernel;
    int64_t *voxels; /* [num_voxels] that the tube may reach */
    int64_t num_voxels;
    double middle_mm[3], direction[3]; /* of the line, from the first end to the second */
};

/* --- geometry --- */

static void end_of(const lr_scanner *scanner, const struct tube_crystal *crystal, double end_mm[3])
{
    const lr_module *module = &scanner->modules[crystal->module];
    const double u = (crystal->p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
    const double v = (crystal->q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
    lr_scanner_detection_centre(scanner, crystal->module, end_mm);
    vec_add_scaled(end_mm, u, module->u, end_mm);
    vec_add_scaled(end_mm, v, module->v, end_mm);
}

void tube_ends(const lr_scanner *scanner, const struct tube_crystal crystals[2], double ends_mm[2][3])
{
    end_of(scanner, &crystals[0], ends_mm[0]);
    end_of(scanner, &crystals[1], ends_mm[1]);
}

static lr_status check_crystal(const lr_scanner *scanner, const struct tube_crystal *crystal, const lr_log *log)
{
    if (crystal->module < 0 || crystal->module >= scanner->num_modules) {
        return lr_error(log, LR_USAGE, "module %d does not exist: the scanner has modules 0 to %d", crystal->module,
                        scanner->num_modules - 1);
    }
    const int *size = scanner->modules[crystal->module].crystals;
    if (crystal->p < 0 || crystal->p >= size[0] || crystal->q < 0 || crystal->q >= size[1]) {
        return lr_error(log, LR_USAGE, "module %d has no crystal (%d, %d): p goes to %d, q to %d", crystal->module,
                        crystal->p, crystal->q, size[0] - 1, size[1] - 1);
    }
    return LR_OK;
}

static int number_of(const lr_scanner *scanner, const struct tube_crystal *crystal)
{
    return scanner->first_crystal[crystal->module] + crystal->q * scanner->modules[crystal->module].crystals[0] +
           crystal->p;
}

lr_status tube_check(const struct study_view *study, const struct tube_crystal crystals[2], int64_t *lor,
                     const lr_log *log)
{
    if (study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    LR_TRY(check_crystal(study->scanner, &crystals[0], log));
    LR_TRY(check_crystal(study->scanner, &crystals[1], log));
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
    free(task->weight);
    free(task->kernel);
    free(task->voxels);
    study_view_release(&task->study);
    free(task);
}

/* One voxel's row, of which there is one LOR at most. */
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

static lr_status create_operator(struct tube_task *task, lr_operator_params params, lr_operator **op)
{
    struct tube_request *request = &task->result.request;
    params.lors = task->study.lors;
    params.grid = &task->study.grid;
    params.backend = task->backend;
    params.mode = request->mode;
    params.rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0;
    params.mu = task->result.has_mu ? task->study.mu : NULL;
    params.mu_steps = task->result.has_mu ? request->mu_steps : 0;
    params.store = LR_STORE_NO;
    if (request->samples > 0) lr_grid_split_samples(&task->study.grid, request->samples, params.samples);
    LR_TRY(operator_create(&params, op));
    const lr_operator_info *info = lr_operator_get_info(*op);
    request->rays = info->rays;
    request->samples = info->samples[0] * info->samples[1] * info->samples[2];
    request->mu_steps = task->result.has_mu ? info->mu_steps : 0;
    return LR_OK;
}

/* --- the voxels --- */

/* Lines between the two faces stay within this of the line between their centres. */
static double tube_radius_mm(const struct tube_task *task)
{
    double radius_mm = 0;
    for (int k = 0; k < 2; k++) {
        const int module = task->result.request.crystals[k].module;
        const double *face_mm = task->study.scanner->modules[module].face_mm;
        radius_mm = fmax(radius_mm, 0.5 * hypot(face_mm[0], face_mm[1]));
    }
    return radius_mm;
}

static bool is_near(const struct tube_task *task, int64_t row, double radius_mm)
{
    double from_middle[3], across[3];
    lr_grid_voxel_centre(&task->study.grid, row, from_middle);
    vec_sub(from_middle, task->middle_mm, from_middle);
    vec_cross(from_middle, task->direction, across);
    return vec_dot(across, across) <= radius_mm * radius_mm;
}

static lr_status find_voxels(struct tube_task *task, const lr_log *log)
{
    const int64_t total = lr_grid_num_voxels(&task->study.grid);
    const double reach_mm = tube_radius_mm(task) + 0.5 * vec_length(task->study.grid.voxel_mm);
    const struct lr_items items = {sizeof(*task->voxels), "a list of voxels", log};
    int64_t room = 0;
    for (int64_t row = 0; row < total; row++) {
        if (!is_near(task, row, reach_mm)) continue;
        LR_TRY(lr_grow(&task->voxels, &room, task->num_voxels + 1, &items));
        task->voxels[task->num_voxels++] = row;
    }
    return LR_OK;
}

static lr_status compute_rows(struct tube_task *task, lr_operator *op)
{
    const lr_selection part = {.lors = &task->result.lor, .num_lors = 1};
    const lr_row_choice choice = {.voxels = task->voxels, .num_voxels = task->num_voxels, .part = &part};
    const lr_row_sink sink = {take_row, task};
    return task->num_voxels > 0 ? lr_operator_rows_part(op, &choice, &sink) : LR_OK;
}

/* --- the profile --- */

/* Half the extent of the grid along the line, from the line's middle. */
static double half_extent_mm(const struct tube_task *task)
{
    const lr_grid *grid = &task->study.grid;
    double most = 0.5 * task->result.length_mm;
    for (int corner = 0; corner < 8; corner++) {
        double t = 0;
        for (int k = 0; k < 3; k++) {
            const double at = (corner >> k & 1) != 0 ? grid->size[k] - 0.5 : -0.5;
            t += task->direction[k] * (grid->origin_mm[k] + at * grid->voxel_mm[k] - task->middle_mm[k]);
        }
        most = fmax(most, fabs(t));
    }
    return most;
}

static lr_status lay_out_profile(struct tube_task *task, double half_mm, const lr_log *log)
{
    const lr_grid *grid = &task->study.grid;
    struct tube_profile *profile = &task->result.profile;
    const double fine_mm = fmin(grid->voxel_mm[0], fmin(grid->voxel_mm[1], grid->voxel_mm[2]));
    profile->step_mm = fmax(fine_mm, 2 * half_mm / (MOST_BINS - 1));
    const int half = (int)ceil(half_mm / profile->step_mm);
    profile->count = 2 * half + 1; /* the line's middle is that of a bin */
    profile->first_mm = -half * profile->step_mm;
    task->weight = lr_alloc(profile->count, sizeof(*task->weight), "a profile", log);
    profile->weight = task->weight;
    if (task->result.sigma_mm > 0) {
        task->kernel = lr_alloc(profile->count, sizeof(*task->kernel), "a profile", log);
        profile->kernel = task->kernel;
    }
    return task->weight != NULL && (task->kernel != NULL || task->result.sigma_mm == 0) ? LR_OK : LR_FAILED;
}

/* Spreads a voxel over the planes that it reaches: by its points, so that nothing is lost. */
static void add_voxel(struct tube_task *task, int64_t row)
{
    const struct tube_profile *profile = &task->result.profile;
    const double share = task->image->values[row] / (double)(PARTS * PARTS * PARTS);
    lr_sample sample = {row, {PARTS, PARTS, PARTS}, 0};
    for (; sample.index < PARTS * PARTS * PARTS; sample.index++) {
        double point_mm[3], from_middle[3];
        lr_grid_sample_point(&task->study.grid, &sample, point_mm);
        vec_sub(point_mm, task->middle_mm, from_middle);
        const double t = vec_dot(from_middle, task->direction);
        const int bin = (int)floor((t - profile->first_mm) / profile->step_mm + 0.5);
        task->weight[bin < 0 ? 0 : bin >= profile->count ? profile->count - 1 : bin] += (float)share;
    }
}

static void fill_kernel(struct tube_task *task)
{
    const struct tube_profile *profile = &task->result.profile;
    const double sigma = task->result.sigma_mm;
    const struct tube_request *request = &task->result.request;
    const double centre_mm = request->kernel != TUBE_LOR && request->has_tof ? request->tof_mm : 0;
    for (int n = 0; task->kernel != NULL && n < profile->count; n++) {
        const double t = (profile->first_mm + n * profile->step_mm - centre_mm) / sigma;
        task->kernel[n] = (float)(exp(-0.5 * t * t) / (sigma * sqrt(2 * PI)));
    }
}

static void find_peak(struct tube_task *task)
{
    const struct tube_profile *profile = &task->result.profile;
    int peak = 0;
    for (int n = 1; n < profile->count; n++) peak = profile->weight[n] > profile->weight[peak] ? n : peak;
    task->result.peak_mm = profile->first_mm + peak * profile->step_mm;
}

static lr_status make_profile(struct tube_task *task, const lr_log *log)
{
    LR_TRY(lay_out_profile(task, half_extent_mm(task), log));
    for (int64_t k = 0; k < task->num_voxels; k++)
        if (task->image->values[task->voxels[k]] > 0) add_voxel(task, task->voxels[k]);
    fill_kernel(task);
    find_peak(task);
    return LR_OK;
}

/* --- an event --- */

/* What the row is asked of: crystals over the whole scanner, in the order of the request. */
struct tube_event {
    const struct study_view *study;
    const struct tube_request *request; /* of another kernel than TUBE_LOR */
    int32_t crystals[2];
};

static const lr_listmode_kernel kernels[] = {
    [TUBE_TUBE] = LR_LISTMODE_TUBE, [TUBE_LINE] = LR_LISTMODE_LINE, [TUBE_EXACT] = LR_LISTMODE_EXACT};

/* One event is not worth a device. */
static const char *backend_for(enum tube_kernel kernel)
{
    return kernel == TUBE_EXACT ? "auto" : "native"; /* where modules hide each other, cpu alone */
}

/* The event's elements as an image on the study's grid, which is zero before; fills in the points of a
 * voxel. errors: LR_CANCELLED; as lr_listmode_create, logged. */
static lr_status tube_event_row(const struct tube_event *event, lr_image *image, int *samples, const lr_log *log,
                                const lr_progress *progress)
{
    const struct tube_request *request = event->request;
    const lr_event line = {
        .crystals = {event->crystals[0], event->crystals[1]}, .tof_mm = (float)request->tof_mm, .weight = 1};
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = request->tof_ps};
    lr_listmode_params params = {.lors = event->study->lors,
                                 .grid = &event->study->grid,
                                 .events = &line,
                                 .count = 1,
                                 .info = request->has_tof ? &info : NULL,
                                 .kernel = kernels[request->kernel],
                                 .backend = backend_for(request->kernel),
                                 .log = log,
                                 .progress = progress};
    if (request->kernel == TUBE_EXACT && request->samples > 0)
        lr_grid_split_samples(&event->study->grid, request->samples, params.samples);
    LR_TRY(lr_progress_report(progress, "preparing the projector", 0, 1));
    lr_operator *op = lr_listmode_create(&params);
    if (op == NULL) return LR_FAILED;
    const int *points = lr_operator_get_info(op)->samples;
    float one = 1;
    const lr_vector value = lr_vector_of_floats(&one, 1);
    lr_vector row = lr_image_vector(image);
    *samples = points[0] * points[1] * points[2];
    const lr_status status = lr_operator_back(op, NULL, &value, &row);
    lr_operator_destroy(op);
    return status;
}

/* Lists the voxels that it has elements in. */
static lr_status list_elements(struct tube_task *task, const lr_log *log)
{
    struct tube_result *result = &task->result;
    const struct lr_items items = {sizeof(*task->voxels), "a list of voxels", log};
    const int64_t total = lr_grid_num_voxels(&task->study.grid);
    int64_t room = 0;
    for (int64_t row = 0; row < total; row++) {
        const double element = task->image->values[row];
        if (element > 0) {
            LR_TRY(lr_grow(&task->voxels, &room, task->num_voxels + 1, &items));
            task->voxels[task->num_voxels++] = row;
            result->sum += element;
            result->largest = fmax(result->largest, element);
        }
    }
    result->num_voxels = task->num_voxels;
    return LR_OK;
}

static lr_status run_event(struct tube_task *task, const lr_log *log, const lr_progress *progress)
{
    struct tube_request *request = &task->result.request;
    const lr_scanner *scanner = task->study.scanner;
    const struct tube_event event = {
        .study = &task->study,
        .request = request,
        .crystals = {number_of(scanner, &request->crystals[0]), number_of(scanner, &request->crystals[1])}};
    LR_TRY(tube_event_row(&event, task->image, &request->samples, log, progress));
    LR_TRY(list_elements(task, log));
    return make_profile(task, log);
}

static lr_status run(void *object, const lr_log *log, const lr_progress *progress)
{
    struct tube_task *task = object;
    const lr_operator_params params = {.log = log, .progress = progress};
    lr_operator *op = NULL;
    task->image = lr_image_create(&task->study.grid, log);
    if (task->image == NULL) return LR_FAILED;
    task->result.image = task->image;
    if (task->result.request.kernel != TUBE_LOR) return run_event(task, log, progress);
    LR_TRY(find_voxels(task, log));
    LR_TRY(create_operator(task, params, &op));
    const lr_status status = compute_rows(task, op);
    lr_operator_destroy(op);
    LR_TRY(status);
    return make_profile(task, log);
}

const struct task_kind tube_kind = {"computing the tube of response", run, destroy};

/* --- asking --- */

static void describe(struct tube_task *task)
{
    struct tube_result *result = &task->result;
    tube_ends(task->study.scanner, result->request.crystals, result->ends_mm);
    vec_sub(result->ends_mm[1], result->ends_mm[0], task->direction);
    vec_add_scaled(result->ends_mm[0], 0.5, task->direction, task->middle_mm);
    result->length_mm = vec_length(task->direction);
    for (int k = 0; k < 3; k++) task->direction[k] /= result->length_mm;
    const struct tube_request *request = &result->request;
    const bool is_event = request->kernel != TUBE_LOR;
    const double tof_ps = is_event && request->tof_ps > 0 ? request->tof_ps : task->study.scanner->tof_resolution_ps;
    const bool has_tof = !is_event || request->has_tof;
    result->has_mu = !is_event && task->study.mu != NULL && !request->without_mu;
    result->sigma_mm = has_tof ? tof_ps * HALF_LIGHT_MM_PER_PS / FWHM_PER_SIGMA : 0;
}

lr_status tube_ask(struct task_runner *runner, const struct study_view *study, const struct tube_request *request,
                   const lr_log *log)
{
    int64_t lor;
    LR_TRY(tube_check(study, request->crystals, &lor, log));
    struct tube_task *task = lr_alloc(1, sizeof(*task), "a tube of response", log);
    if (task == NULL) return LR_FAILED;
    task->study = study_view_hold(study);
    task->result.request = *request;
    task->result.request.backend = NULL; /* may be gone before the job ends */
    if (request->mode == LR_MODE_AUTO) task->result.request.mode = LR_MODE_EXACT;
    const bool has_mu = study->mu != NULL && !request->without_mu;
    task->backend = backend_name(request->backend, has_mu ? "cpu" : "native");
    task->result.lor = lor;
    describe(task);
    task_runner_ask(runner, task);
    return LR_OK;
}

const struct tube_result *tube_result(const struct task_runner *runner)
{
    const struct tube_task *task = runner->result;
    return task != NULL ? &task->result : NULL;
}
