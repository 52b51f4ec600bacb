/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors of a scanner: docs/method/direct.md, "Factors of a scanner". Directions go by the batch: threads
 * first make a table of lines for each of them, then each takes slices of all histo-images. So every sum
 * has one order, whatever the number of threads. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "direct/factor_table.h"
#include "model/simulate/rays.h"

#include <math.h>
#include <stdlib.h>

/* Directions between two reports of progress, at most; voxels times directions, about. */
enum { BATCH = 64, BATCH_VOXELS = 1 << 26 };

/* Lines to a crystal's pitch, at least; lines to a cell's edge, at most. */
enum { LINES_A_PITCH = 4, MOST_LINES_A_CELL = 16 };

static const double degree = 3.14159265358979323846 / 180.0;
static const int usual_directions = 32;

/* Nothing is tilted more, nor by more beyond the acceptance. */
static const double steepest_deg = 89.5, widest_margin_deg = 10;

/* Of sequences whose every run is spread evenly, by the golden ratio in one and two dimensions. */
static const double golden = 0.6180339887498949, plastic[2] = {0.7548776662466927, 0.5698402909980532};

struct job {
    const lr_direct_factors_params *params;
    int threads;
    struct lr_factor_scene scene;
    double margin_deg; /* by which lines may be tilted more or less than their LOR */
    int64_t num_directions;
    struct lr_factor_worker *workers; /* owned [threads] */
    int num_workers;
    struct lr_factor_direction directions[BATCH];
    struct lr_factor_table tables[BATCH];
    lr_status made[BATCH];
    int64_t first, count; /* directions of the batch */
    lr_histo_images *histo;
};

/* --- directions --- */

/* An interval of azimuth, and one of tilt by its sines, in which directions are spread evenly. */
struct patch {
    double azimuth_deg, half_deg;
    double sine[2];
    int view;
};

/* Interval `tilt` of the set, and -1 and `tilts` for those beyond it whose lines may belong to LORs
 * within. */
static struct patch patch_at(const struct job *job, int azimuth, int tilt)
{
    const lr_view_set *set = &job->scene.set;
    const bool is_view = tilt >= 0 && tilt < set->tilts;
    const double most = set->acceptance_deg + job->margin_deg;
    const double low = tilt < 0 ? -most : set->acceptance_deg * (2.0 * tilt / set->tilts - 1);
    const double high = tilt >= set->tilts ? most : set->acceptance_deg * (2.0 * (tilt + 1) / set->tilts - 1);
    return (struct patch){.azimuth_deg = 180.0 * azimuth / set->azimuths,
                          .half_deg = 90.0 / set->azimuths,
                          .sine = {sin(low * degree), sin(high * degree)},
                          .view = is_view ? tilt * set->azimuths + azimuth : -1};
}

/* Its solid angle over that of a view in the mean. */
static double share_of(const struct job *job, const struct patch *patch)
{
    const lr_view_set *set = &job->scene.set;
    const double mean = 2 * sin(set->acceptance_deg * degree) / set->tilts;
    return (patch->sine[1] - patch->sine[0]) / mean;
}

/* How many directions each patch of a tilt has: beyond the acceptance as dense as within. */
static int count_of(const struct job *job, int tilt)
{
    const int wanted = job->params->directions > 0 ? job->params->directions : usual_directions;
    const struct patch patch = patch_at(job, 0, tilt);
    return patch.view >= 0 ? wanted : (int)ceil(wanted * share_of(job, &patch));
}

/* Tilts one after the other, in each azimuths, in each its directions. */
static struct lr_factor_direction direction_at(const struct job *job, int64_t number)
{
    int64_t left = number, count = count_of(job, -1);
    int tilt = -1;
    while (left >= count * job->scene.set.azimuths) {
        left -= count * job->scene.set.azimuths;
        count = count_of(job, ++tilt);
    }
    const struct patch patch = patch_at(job, (int)(left / count), tilt);
    const double place = (double)(left % count);
    const double x = (place + 0.5) / (double)count, y = fmod(0.5 + (place + 1) * golden, 1);
    const double sine = patch.sine[0] + x * (patch.sine[1] - patch.sine[0]);
    const lr_view along = {patch.azimuth_deg + (2 * y - 1) * patch.half_deg, asin(sine) / degree};
    struct lr_factor_direction direction = {
        .weight = share_of(job, &patch) / (double)count,
        .shift = {fmod((double)number * plastic[0], 1), fmod((double)number * plastic[1], 1)},
        .view = patch.view,
    };
    lr_view_axes(&along, direction.axes);
    return direction;
}

static void count_directions(struct job *job)
{
    for (int tilt = -1; tilt <= job->scene.set.tilts; tilt++)
        job->num_directions += (int64_t)job->scene.set.azimuths * count_of(job, tilt);
}

/* --- scene --- */

static lr_status check_efficiencies(const lr_direct_factors_params *params)
{
    const int count = params->lors->scanner->num_crystals;
    for (int c = 0; params->efficiencies != NULL && c < count; c++) {
        if (!(params->efficiencies[c] >= 0 && isfinite(params->efficiencies[c]))) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "crystal %d has the efficiency %g: it must be finite and not negative", c,
                            (double)params->efficiencies[c]);
        }
    }
    return LR_OK;
}

static lr_status place_crystals(struct job *job)
{
    const lr_scanner *scanner = job->scene.lors->scanner;
    const float *efficiencies = job->params->efficiencies;
    LR_TRY(check_efficiencies(job->params));
    job->scene.crystals = lr_alloc(scanner->num_crystals, sizeof(*job->scene.crystals), "crystals", job->params->log);
    if (job->scene.crystals == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) {
            struct lr_factor_crystal *crystal = &job->scene.crystals[c];
            crystal->module = m;
            crystal->efficiency = efficiencies != NULL ? efficiencies[c] : 1;
            lr_scanner_hit_centre(scanner, c, crystal->hit_mm);
        }
    }
    return LR_OK;
}

/* Cells are half a voxel wide; their lines are at most a quarter of a crystal's pitch apart. */
static void choose_cells(struct job *job)
{
    struct lr_factor_scene *scene = &job->scene;
    const lr_scanner *scanner = scene->lors->scanner;
    const double *voxel_mm = scene->grid.voxel_mm;
    double pitch_mm = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        pitch_mm = fmin(pitch_mm, fmin(module->pitch_mm[0], module->pitch_mm[1]));
    }
    scene->cell_mm[0] = 0.5 * fmin(voxel_mm[0], voxel_mm[1]);
    scene->cell_mm[1] = 0.5 * voxel_mm[2];
    for (int n = 0; n < 2; n++) {
        const double wanted = ceil(LINES_A_PITCH * scene->cell_mm[n] / pitch_mm);
        scene->lines_per_cell[n] = (int)fmin(wanted, MOST_LINES_A_CELL);
    }
}

/* Of a LOR and a line between the same crystals: by their size, seen over the bore's radius. */
static double find_margin_deg(const lr_scanner *scanner, const struct lr_sight *sight)
{
    double widest_mm = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *pitch_mm = scanner->modules[m].pitch_mm;
        widest_mm = fmax(widest_mm, hypot(pitch_mm[0], pitch_mm[1]));
    }
    return fmin(atan2(widest_mm, sight->radius_mm[0]) / degree, widest_margin_deg);
}

/* What a table of the steepest direction measures. */
static void find_most_size(struct job *job)
{
    struct lr_factor_scene *scene = &job->scene;
    const lr_grid *grid = &scene->grid;
    const double tilt = fmin(scene->set.acceptance_deg + job->margin_deg, steepest_deg) * degree;
    const double across_mm = hypot((grid->size[0] - 1) * grid->voxel_mm[0], (grid->size[1] - 1) * grid->voxel_mm[1]);
    const double extent_mm[2] = {across_mm, (grid->size[2] - 1) * grid->voxel_mm[2] + across_mm * sin(tilt)};
    for (int n = 0; n < 2; n++) scene->most_size[n] = (int)ceil(extent_mm[n] / scene->cell_mm[n]) + 4;
}

static lr_status prepare_mu(struct job *job)
{
    const lr_image *mu = job->params->mu;
    if (mu == NULL) return LR_OK;
    job->scene.has_mu = true;
    LR_TRY(lr_mu_lines_init(&job->scene.mu, mu, job->params->log));
    job->scene.mu_step_mm = HUGE_VAL;
    for (int k = 0; k < 3; k++) {
        const double edge_mm = fmin(mu->grid.voxel_mm[k], job->scene.grid.voxel_mm[k]);
        job->scene.mu_step_mm = fmin(job->scene.mu_step_mm, edge_mm);
    }
    return LR_OK;
}

static lr_status prepare_scene(struct job *job)
{
    const lr_direct_factors_params *params = job->params;
    const lr_scanner *scanner = params->lors->scanner;
    struct lr_sight sight;
    job->scene.lors = params->lors;
    job->scene.grid = *params->grid;
    LR_TRY(lr_grid_check(params->grid, params->log));
    LR_TRY(lr_view_set_complete(&params->set, &job->scene.set, params->log));
    LR_TRY(lr_sight_init(&sight, scanner, params->log));
    job->scene.outer_mm = sight.radius_mm[1];
    job->margin_deg = fmax(0, fmin(find_margin_deg(scanner, &sight), steepest_deg - job->scene.set.acceptance_deg));
    lr_sight_finish(&sight);
    LR_TRY(place_crystals(job));
    choose_cells(job);
    find_most_size(job);
    return prepare_mu(job);
}

static lr_status open_workers(struct job *job)
{
    const lr_log *log = job->params->log;
    job->workers = lr_alloc(job->threads, sizeof(*job->workers), "threads", log);
    for (int k = 0; job->workers != NULL && k < job->threads; k++) {
        job->num_workers++;
        LR_TRY(lr_factor_worker_init(&job->workers[k], &job->scene, log));
    }
    return job->workers != NULL ? LR_OK : LR_FAILED;
}

/* --- sums --- */

static void fill_tables(void *user, int64_t begin, int64_t end, int worker)
{
    struct job *job = user;
    for (int64_t k = begin; k < end; k++)
        job->made[k] = lr_factor_table_fill(&job->tables[k], &job->scene, &job->directions[k], &job->workers[worker]);
}

/* Where a row of voxels begins in a table, in cells, and how far each voxel goes on. */
struct course {
    float begin[2], step[2];
};

static struct course course_of(const struct job *job, int64_t k, int y, int z)
{
    const lr_grid *grid = &job->scene.grid;
    const struct lr_factor_table *table = &job->tables[k];
    struct course course;
    for (int n = 0; n < 2; n++) {
        const double *axis = job->directions[k].axes[1 + n];
        const double cell_mm = job->scene.cell_mm[n];
        const double place_mm = axis[0] * grid->origin_mm[0] + axis[1] * (grid->origin_mm[1] + y * grid->voxel_mm[1]) +
                                axis[2] * (grid->origin_mm[2] + z * grid->voxel_mm[2]);
        course.begin[n] = (float)((place_mm - table->first_mm[n]) / cell_mm);
        course.step[n] = (float)(axis[0] * grid->voxel_mm[0] / cell_mm);
    }
    return course;
}

/* Voxels of a row, from the first up to the second without it, that may lie where a plane is not 0. */
static void find_range(const struct lr_factor_plane *plane, const struct course *course, int count, int range[2])
{
    double low = 0, high = count;
    for (int n = 0; n < 2; n++) {
        const double begin = (double)course->begin[n], step = (double)course->step[n];
        const double a = plane->low[n] - 1 - begin, b = plane->high[n] + 1 - begin;
        if (fabs(step) * count < 0.5) {
            high = a > 1 || b < -1 ? 0 : high; /* all voxels are within half a cell */
        } else {
            low = fmax(low, floor(fmin(a / step, b / step)));
            high = fmin(high, ceil(fmax(a / step, b / step)) + 1);
        }
    }
    range[0] = (int)fmin(low, count);
    range[1] = (int)fmax(high, 0);
}

/* Linear between the middles of cells. row: of the voxels; range: those to add to. */
static void add_row(const struct lr_factor_table *table, const float *cells, const struct course *course,
                    const int range[2], float weight, float *row)
{
    const int width = table->size[0];
    for (int x = range[0]; x < range[1]; x++) {
        const float s = course->begin[0] + (float)x * course->step[0];
        const float a = course->begin[1] + (float)x * course->step[1];
        const int i = (int)s, k = (int)a;
        const float *cell = cells + (int64_t)k * width + i;
        const float ws = s - (float)i, wa = a - (float)k;
        const float low = cell[0] + ws * (cell[1] - cell[0]);
        const float high = cell[width] + ws * (cell[width + 1] - cell[width]);
        row[x] += weight * (low + wa * (high - low));
    }
}

static void add_slice(struct job *job, int64_t k, int z)
{
    const int *size = job->scene.grid.size;
    const struct lr_factor_table *table = &job->tables[k];
    const float weight = (float)job->directions[k].weight;
    const int64_t num_voxels = lr_grid_num_voxels(&job->scene.grid);
    for (int y = 0; table->num_planes > 0 && y < size[1]; y++) {
        const struct course course = course_of(job, k, y, z);
        for (int n = 0; n < table->num_planes; n++) {
            const struct lr_factor_plane *plane = &table->planes[n];
            float *view = job->histo->values + plane->view * num_voxels;
            int range[2];
            find_range(plane, &course, size[0], range);
            add_row(table, plane->cells, &course, range, weight, view + size[0] * (y + (int64_t)size[1] * z));
        }
    }
}

static void add_slices(void *user, int64_t begin, int64_t end, int worker)
{
    struct job *job = user;
    (void)worker;
    for (int64_t z = begin; z < end; z++)
        for (int64_t k = 0; k < job->count; k++) add_slice(job, k, (int)z);
}

static lr_status add_batch(struct job *job)
{
    lr_status status = LR_OK;
    for (int64_t k = 0; k < job->count; k++) job->directions[k] = direction_at(job, job->first + k);
    lr_parallel_for(job->threads, job->count, 1, fill_tables, job);
    for (int64_t k = 0; k < job->count; k++) status = job->made[k] != LR_OK ? job->made[k] : status;
    if (status == LR_OK)
        lr_parallel_for(job->threads, job->scene.grid.size[2], 1, add_slices, job);
    else
        (void)lr_error(job->params->log, status, "no memory for tables of lines");
    for (int64_t k = 0; k < job->count; k++) lr_factor_table_finish(&job->tables[k]);
    return status;
}

/* Points beyond all crystals lie on lines that the scanner measures, but not between their ends. */
static void clear_beyond(const struct job *job)
{
    const lr_grid *grid = &job->scene.grid;
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    for (int64_t n = 0; n < slice; n++) {
        double centre_mm[3];
        lr_grid_voxel_centre(grid, n, centre_mm);
        if (hypot(centre_mm[0], centre_mm[1]) < job->scene.outer_mm) continue;
        for (int64_t at = n; at < job->histo->num_views * num_voxels; at += slice) job->histo->values[at] = 0;
    }
}

static lr_status run(struct job *job)
{
    LR_TRY(prepare_scene(job));
    count_directions(job);
    LR_TRY(open_workers(job));
    const int num_views = lr_view_set_count(&job->scene.set);
    lr_view *views = lr_alloc(num_views, sizeof(*views), "views", job->params->log);
    for (int k = 0; views != NULL && k < num_views; k++) views[k] = lr_view_set_at(&job->scene.set, k);
    job->histo = views != NULL ? lr_histo_images_create(&job->scene.grid, views, num_views, job->params->log) : NULL;
    free(views);
    if (job->histo == NULL) return LR_FAILED;
    const int64_t fitting = BATCH_VOXELS / lr_grid_num_voxels(&job->scene.grid);
    const int64_t batch = fitting < 1 ? 1 : fitting < BATCH ? fitting : BATCH;
    for (job->first = 0; job->first < job->num_directions; job->first += job->count) {
        LR_TRY(lr_progress_report(job->params->progress, "factors of views", (double)job->first,
                                  (double)job->num_directions));
        const int64_t left = job->num_directions - job->first;
        job->count = left < batch ? left : batch;
        LR_TRY(add_batch(job));
    }
    clear_beyond(job);
    return LR_OK;
}

lr_histo_images *lr_direct_factors_create(const lr_direct_factors_params *params)
{
    if (params->lors == NULL || params->lors->scanner == NULL || params->grid == NULL || params->directions < 0 ||
        params->threads < 0) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "factors of views need LORs of a scanner, a grid, and numbers of directions "
                     "and threads that are not negative");
        return NULL;
    }
    struct job *job = lr_alloc(1, sizeof(*job), "factors of views", params->log);
    if (job == NULL) return NULL;
    job->params = params;
    job->threads = params->threads > 0 ? params->threads : lr_num_processors();
    lr_histo_images *histo = NULL;
    if (run(job) == LR_OK) {
        histo = job->histo;
        job->histo = NULL;
    }
    for (int k = 0; k < job->num_workers; k++) lr_factor_worker_finish(&job->workers[k]);
    free(job->workers);
    free(job->scene.crystals);
    lr_mu_lines_finish(&job->scene.mu);
    lr_histo_images_destroy(job->histo);
    free(job);
    return histo;
}
