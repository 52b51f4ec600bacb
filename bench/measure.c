/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench correspondence: geometries, exact rows of some voxels, and the clock.
 *
 * `pair` is the workload of Toth, Magdics, Szirmay-Kalos, Fast System Matrix Generation on a GPU Cluster: two modules
 * of 32 x 32 crystals and 128^3 voxels. The planes of the modules are perpendicular to y and contain the axial
 * direction z, like the panels of a ring; the long edge of the voxels is therefore along y. `angled` and `tilted` turn
 * the second module about its own centre, not about the scanner's centre. The module then sees the same voxels, and
 * times per element can be compared. */
#include "bench.h"
#include "cli/stop.h"
#include "cli/verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const bench_backends[BENCH_NUM_BACKENDS + 1] = {"compute", "raster", "native", "cpu", NULL};
const char *const bench_modes[BENCH_NUM_MODES + 1] = {"sampled", "exact", NULL};

const char *bench_mode_name(lr_mode mode)
{
    return bench_modes[mode == LR_MODE_EXACT];
}

#define PAIR_GRID {128, 128, 128}, {0.45, 1, 0.45}, {8, 8, 8}, 12

const struct bench_workload bench_workloads[BENCH_NUM_WORKLOADS + 1] = {
    {"pair", "two parallel modules of 32 x 32 crystals of 2 mm, 400 mm apart", NULL, 0, 0, PAIR_GRID},
    {"angled", "the same, one module turned by 20 degrees about the axial direction", NULL, 20, 0, PAIR_GRID},
    {"tilted", "the same, then turned by 7 degrees about (1, 1, 1) out of the axial direction", NULL, 20, 7, PAIR_GRID},
    {"vista", "whole eXplore Vista DR", "ge-explore-vista-dr", 0, 0, {64, 64, 64}, {0.8, 0.8, 0.65}, {6, 6, 6}, 12},
    {"penn", "whole Penn LaBr3", "penn-labr3", 0, 0, {144, 144, 48}, {4, 4, 4}, {4, 4, 4}, 6},
    {"mmr", "whole Biograph mMR", "siemens-mmr", 0, 0, {172, 172, 127}, {2.086, 2.086, 2.031}, {2, 2, 2}, 3},
    {0},
};

static const double pi = 3.14159265358979323846;

/* Turns a vector about a unit axis (Rodrigues' formula). */
static void rotate(double vector[3], const double axis[3], double angle_deg)
{
    const double angle = angle_deg * pi / 180, cosine = cos(angle), sine = sin(angle);
    const double along = axis[0] * vector[0] + axis[1] * vector[1] + axis[2] * vector[2];
    double side[3];
    for (int k = 0; k < 3; k++) {
        const int l = (k + 1) % 3, m = (k + 2) % 3;
        side[k] = axis[l] * vector[m] - axis[m] * vector[l];
    }
    for (int k = 0; k < 3; k++) vector[k] = cosine * vector[k] + sine * side[k] + (1 - cosine) * along * axis[k];
}

lr_scanner *bench_scanner(const struct bench_workload *workload, const lr_log *log)
{
    if (workload->preset != NULL) return lr_scanner_read(workload->preset, log);
    static const double axial[3] = {0, 0, 1};
    const double third = 1 / sqrt(3), diagonal[3] = {third, third, third};
    lr_module modules[2] = {{.centre_mm = {0, 200, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {32, 32},
                             .pitch_mm = {2, 2},
                             .face_mm = {2, 2},
                             .depth_mm = 20}}; /* the depth is behind the plane of detection, and has no effect */
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -200;
    double *const axes[2] = {modules[1].u, modules[1].v};
    for (int k = 0; k < 2; k++) {
        rotate(axes[k], axial, workload->turn_deg);
        rotate(axes[k], diagonal, workload->tilt_deg);
    }
    return lr_scanner_create(
        &(lr_scanner_params){.name = workload->description, .modules = modules, .num_modules = 2, .log = log});
}

/* --- exact rows of randomly drawn voxels. Each voxel has one sample point, its centre (N = 1), so that rows of points
 * are rows of voxels --- */

enum { COUNTED_VOXELS = 240 };

static lr_status draw_points(struct bench_sample *sample, const struct bench_draw *draw, struct report *report)
{
    int64_t rows[COUNTED_VOXELS];
    const int64_t total = lr_grid_num_voxels(&sample->grid);
    const int num = total < COUNTED_VOXELS ? (int)total : COUNTED_VOXELS;
    sample->num_voxels = num;
    sample->num_rows = num < draw->num_rows ? num : draw->num_rows;
    sample->points_mm = calloc((size_t)num, sizeof(*sample->points_mm));
    sample->counts = calloc((size_t)num, sizeof(*sample->counts));
    sample->rows = calloc((size_t)sample->num_rows + 1, sizeof(*sample->rows));
    if (sample->points_mm == NULL || sample->counts == NULL || sample->rows == NULL)
        return report_error(report, LR_FAILED, "no memory for a sample of %d voxels", num);
    /* Draws rows below `total` without repeats, in random order. All rows may be drawn. */
    int64_t drawn = 0;
    for (int n = 0; n < num;) {
        rows[n] = (int64_t)(common_random(draw->seed, drawn++) * (double)total);
        bool is_new = true;
        for (int k = 0; k < n; k++) is_new = is_new && rows[k] != rows[n];
        if (is_new) n++;
    }
    for (int k = 0; k < num; k++) lr_grid_voxel_centre(&sample->grid, rows[k], sample->points_mm[k]);
    return LR_OK;
}

/* Counts the crystals whose faces are sampled for a point. These are the crystals of modules that face the point, and
 * that have in coincidence a nearer module which also faces the point. Each of these crystals shoots R x R lines. */
static lr_status count_primaries(struct bench_sample *sample, const lr_lors *lors, struct report *report)
{
    const lr_scanner *scanner = lors->scanner;
    const int num_modules = scanner->num_modules;
    double *distances = calloc((size_t)num_modules, sizeof(*distances)); /* squared distances of modules; -1 = the face
                                                                            is turned away */
    if (distances == NULL) return report_error(report, LR_FAILED, "no memory for the modules' distances");
    double sum = 0;
    for (int n = 0; n < sample->num_voxels; n++) {
        for (int m = 0; m < num_modules; m++) {
            double centre[3], height = 0, squared = 0;
            lr_scanner_detection_centre(scanner, m, centre);
            for (int k = 0; k < 3; k++) {
                const double offset = sample->points_mm[n][k] - centre[k];
                height += offset * scanner->modules[m].normal[k];
                squared += offset * offset;
            }
            distances[m] = height > 0 ? squared : -1;
        }
        double crystals = 0;
        for (int i = 0; i < num_modules; i++) {
            bool has_partner = false;
            for (int j = 0; distances[i] >= 0 && !has_partner && j < num_modules; j++)
                has_partner =
                    distances[j] >= 0 && distances[j] <= distances[i] && j != i && lr_lors_pair(lors, i, j) >= 0;
            const int *num = scanner->modules[i].crystals;
            if (has_partner) crystals += (double)num[0] * num[1];
        }
        sum += crystals;
    }
    sample->primaries_per_voxel = sum / sample->num_voxels;
    free(distances);
    return LR_OK;
}

/* --- exact rows --- */

struct taking {
    struct bench_sample *sample;
    struct report *report;
};

static lr_status take_exact(void *user, const lr_row *row)
{
    const struct taking *taking = user;
    struct bench_sample *sample = taking->sample;
    const size_t count = (size_t)row->count;
    sample->counts[row->row] = (double)row->count;
    if (row->row >= sample->num_rows) return LR_OK;
    struct bench_row *kept = &sample->rows[row->row];
    kept->lor = malloc((count + 1) * sizeof(*kept->lor));
    kept->probability = malloc((count + 1) * sizeof(*kept->probability));
    if (kept->lor == NULL || kept->probability == NULL)
        return report_error(taking->report, LR_FAILED, "no memory for a row of %lld elements", (long long)row->count);
    memcpy(kept->lor, row->lor, count * sizeof(*kept->lor));
    memcpy(kept->probability, row->probability, count * sizeof(*kept->probability));
    kept->count = row->count;
    return LR_OK;
}

static lr_status compute_rows(struct bench_sample *sample, const struct bench_draw *draw, struct report *report)
{
    const lr_operator_params params = {.lors = draw->lors,
                                       .grid = &sample->grid,
                                       .backend = "cpu",
                                       .mode = LR_MODE_EXACT,
                                       .samples = {1, 1, 1},
                                       .store = LR_STORE_NO,
                                       .threads = draw->threads,
                                       .log = &report->log,
                                       .progress = &report->progress};
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(report);
    struct taking taking = {sample, report};
    const lr_row_sink sink = {take_exact, &taking};
    const lr_status status =
        lr_operator_point_rows(op, (const double(*)[3])sample->points_mm, sample->num_voxels, &sink);
    lr_operator_destroy(op);
    return status;
}

lr_status bench_sample_take(struct bench_sample *sample, const struct bench_draw *draw, const lr_grid *grid,
                            struct report *report)
{
    if (sample->num_voxels > 0 && lr_grid_same(&sample->grid, grid)) return LR_OK;
    bench_sample_finish(sample);
    sample->grid = *grid;
    lr_status status = draw_points(sample, draw, report);
    if (status == LR_OK) status = count_primaries(sample, draw->lors, report);
    if (status == LR_OK) status = compute_rows(sample, draw, report);
    if (status != LR_OK) {
        bench_sample_finish(sample);
        return status;
    }
    /* Mean of the counts and its standard error, with the correction for drawing without repeats. */
    const double num = sample->num_voxels;
    const double total = (double)lr_grid_num_voxels(&sample->grid);
    double sum = 0, squares = 0;
    for (int k = 0; k < sample->num_voxels; k++) sum += sample->counts[k];
    sample->mean = sum / num;
    for (int k = 0; k < sample->num_voxels; k++) {
        const double off = sample->counts[k] - sample->mean;
        squares += off * off;
    }
    const double variance = num > 1 ? squares / (num - 1) : 0;
    sample->mean_error = sqrt(variance / num * (1 - num / total));

    return LR_OK;
}

void bench_sample_finish(struct bench_sample *sample)
{
    for (int k = 0; sample->rows != NULL && k < sample->num_rows; k++) {
        free(sample->rows[k].lor);
        free(sample->rows[k].probability);
    }
    free(sample->rows);
    free(sample->counts);
    free(sample->points_mm);
    *sample = (struct bench_sample){0};
}

/* --- comparison --- */

struct comparison {
    const struct bench_sample *sample;
    double difference, reference; /* sums of squares */
    int64_t exact, own, missed;   /* numbers of non-zeros */
};

static double square(double value)
{
    return value * value;
}

/* Compares a row with the exact row of the same voxel. The LORs of both rows ascend. */
static lr_status compare_row(void *user, const lr_row *row)
{
    struct comparison *sums = user;
    const struct bench_row *exact = &sums->sample->rows[row->row];
    int64_t own = 0;
    for (int64_t k = 0; k < exact->count; k++) {
        for (; own < row->count && row->lor[own] < exact->lor[k]; own++)
            sums->difference += square(row->probability[own]);
        const bool found = own < row->count && row->lor[own] == exact->lor[k];
        const double value = found ? row->probability[own++] : 0;
        sums->difference += square(value - exact->probability[k]);
        sums->reference += square(exact->probability[k]);
        sums->missed += !found;
    }
    for (; own < row->count; own++) sums->difference += square(row->probability[own]);
    sums->exact += exact->count;
    sums->own += row->count;
    return LR_OK;
}

/* --- updates of OSEM by the library's own loop, with all vectors at the operator's place --- */

static int ascending(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The first iteration fills caches and is not counted. */
enum { MOST_ITERATIONS = 1 + BENCH_MAX_REPEAT };

struct iterations {
    double wall_s[MOST_ITERATIONS], device_s[MOST_ITERATIONS];
    int count;
};

static lr_status keep_seconds(void *user, const lr_iteration *done)
{
    struct iterations *kept = user;
    kept->wall_s[kept->count] = done->seconds;
    kept->device_s[kept->count++] = done->device_seconds;
    return stop_is_asked() ? LR_CANCELLED : LR_OK;
}

/* Sorts all values except for the first, and returns their median. */
static double median_after_first(double *values, int count)
{
    qsort(values + 1, (size_t)count - 1, sizeof(*values), ascending);
    return values[1 + (count - 1) / 2];
}

/* values: the measured counts, in any memory. errors: those of lr_recon. */
static lr_status bench_time_updates(const struct bench_updates_wish *wish, const lr_vector *values,
                                    struct bench_updates *found)
{
    struct iterations kept = {.count = 0};
    lr_vector image;
    const lr_vector_params params = {
        .count = lr_operator_get_info(wish->op)->num_voxels, .name = "the image", .log = wish->log};
    CLI_TRY(lr_vector_create(&params, &image));
    const lr_status status = lr_recon(&(lr_recon_params){.op = wish->op,
                                                         .data = values,
                                                         .iterations = 1 + wish->repeat,
                                                         .subsets = wish->subsets,
                                                         .iteration = keep_seconds,
                                                         .user = &kept,
                                                         .log = wish->log,
                                                         .progress = wish->progress},
                                      &image);
    lr_vector_destroy(&image);
    if (status == LR_OK) {
        const double updates = wish->subsets;
        *found = (struct bench_updates){.subsets = wish->subsets,
                                        .wall_s = median_after_first(kept.wall_s, kept.count) / updates,
                                        .device_s = median_after_first(kept.device_s, kept.count) / updates};
    }
    return status;
}

/* --- time and accuracy of one operator in both directions; random numbers in all voxels and LORs ensure that no work
 * can be left out --- */

enum { LEAST_EDGE = 4 };

/* A projection must run this long before its end is estimated. */
static const double guess_after_s = 1.5;

/* One attempt with one grid. Its report keeps errors for the result. */
struct attempt {
    struct report report;
    struct report *outer;
    const struct bench_wish *wish;
    struct bench_result *result;
    lr_operator *op;
    lr_vector image, back; /* [num_voxels], in the operator's memory */
    lr_vector data;        /* [num_lors], in the operator's memory */
    float *scratch;        /* owned [CHUNK], on the host */
    bool is_limited;       /* projections that would take too long are stopped */
    bool too_slow;
    double start_s;
};

static void catch_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct attempt *attempt = user;
    if (level == LR_LOG_ERROR) {
        attempt->report.status = status;
        snprintf(attempt->result->reason, sizeof(attempt->result->reason), "%s", sentence);
    } else if (level == LR_LOG_WARNING) {
        attempt->outer->log.write(attempt->outer->log.user, level, status, sentence);
    }
}

static bool pass_progress(void *user, const char *what, double done, double total)
{
    struct attempt *attempt = user;
    /* This projection alone will take longer than the limit for all projections. */
    const double elapsed = report_seconds() - attempt->start_s, limit = attempt->wish->seconds;
    const bool is_slow = elapsed > limit || (elapsed > guess_after_s && elapsed * total > limit * done);
    if (attempt->is_limited && is_slow) {
        attempt->too_slow = true;
        return false;
    }
    return attempt->outer->progress.report(attempt->outer->progress.user, what, done, total);
}

/* --- timing --- */

static lr_status project(struct attempt *attempt, bool forward, double seconds[2])
{
    attempt->start_s = report_seconds();
    const lr_status status = forward ? lr_operator_forward(attempt->op, NULL, &attempt->image, &attempt->data)
                                     : lr_operator_back(attempt->op, NULL, &attempt->data, &attempt->back);
    /* The device's clock waits for the device, because results in device memory may not be complete yet. */
    seconds[1] = status == LR_OK ? lr_operator_device_seconds(attempt->op) : 0;
    seconds[0] = report_seconds() - attempt->start_s;
    return status == LR_OK && stop_is_asked() ? LR_CANCELLED : status;
}

/* Returns the median; sorts `values`. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), ascending);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

/* Runs once to compile shaders and to fill caches. Then runs as often as the command line asks for and time permits. */
static lr_status time_direction(struct attempt *attempt, bool forward)
{
    double wall[BENCH_MAX_REPEAT], device[BENCH_MAX_REPEAT], seconds[2];
    struct bench_direction *found = &attempt->result->directions[forward ? 0 : 1];
    const double start_s = report_seconds();
    CLI_TRY(project(attempt, forward, seconds));
    attempt->is_limited = false;
    found->first_run = report_seconds() - start_s > attempt->wish->seconds;
    found->runs = found->first_run ? 1 : 0;
    wall[0] = seconds[0];
    device[0] = seconds[1];
    while (found->runs == 0 ||
           (found->runs < attempt->wish->repeat && report_seconds() - start_s < attempt->wish->seconds)) {
        CLI_TRY(project(attempt, forward, seconds));
        wall[found->runs] = seconds[0];
        device[found->runs++] = seconds[1];
    }
    found->wall_s = median(wall, found->runs);
    found->device_s = median(device, found->runs);
    found->num_passes = lr_operator_device_passes(attempt->op, found->passes);
    found->wall_spread_s = wall[found->runs - 1] - wall[0];
    return LR_OK;
}

/* --- adjoint --- */

/* x and y need not be stored beside their projections, because both can be drawn again. */
enum { IMAGE_STREAM = 1, DATA_STREAM = 2 };

/* Number of random numbers in one step. The numbers are made and compared on the host. */
enum { CHUNK = 1 << 20 };

static lr_status fill(const struct attempt *attempt, const lr_vector *vector, uint64_t seed)
{
    for (int64_t at = 0; at < vector->count; at += CHUNK) {
        lr_vector part = lr_vector_part(vector, at, CHUNK);
        const lr_vector random = lr_vector_of_floats(attempt->scratch, part.count);
        for (int64_t k = 0; k < part.count; k++) attempt->scratch[k] = (float)common_random(seed, at + k);
        CLI_TRY(lr_vector_copy(&random, &part));
    }
    return LR_OK;
}

static lr_status dot_with_random(const struct attempt *attempt, const lr_vector *vector, uint64_t seed, double *sum)
{
    *sum = 0;
    for (int64_t at = 0; at < vector->count; at += CHUNK) {
        const lr_vector part = lr_vector_part(vector, at, CHUNK);
        lr_vector host = lr_vector_of_floats(attempt->scratch, part.count);
        CLI_TRY(lr_vector_copy(&part, &host));
        for (int64_t k = 0; k < part.count; k++)
            *sum += attempt->scratch[k] * (double)(float)common_random(seed, at + k);
    }
    return LR_OK;
}

static lr_status time_both(struct attempt *attempt)
{
    const uint64_t seed = 4 * attempt->wish->seed;
    const struct bench_result *result = attempt->result;
    lr_vector_params params = {.place = lr_operator_place(attempt->op),
                               .count = result->num_voxels,
                               .name = "an image",
                               .log = &attempt->report.log};
    CLI_TRY(lr_vector_create(&params, &attempt->image));
    CLI_TRY(lr_vector_create(&params, &attempt->back));
    params.count = result->num_lors;
    params.name = "one number per LOR";
    CLI_TRY(lr_vector_create(&params, &attempt->data));
    attempt->scratch = common_floats(&attempt->report, CHUNK, "random numbers");
    CLI_TRY(attempt->scratch != NULL ? LR_OK : LR_FAILED);

    CLI_TRY(fill(attempt, &attempt->image, seed + IMAGE_STREAM));
    CLI_TRY(fill(attempt, &attempt->data, seed + DATA_STREAM));
    CLI_TRY(time_direction(attempt, false));
    CLI_TRY(time_direction(attempt, true));
    /* The arrays have the last projections that were timed: `back` has A^T y, and `data` has A x. */
    const uint64_t noise = 4 * attempt->wish->seed;
    double data, image;
    CLI_TRY(dot_with_random(attempt, &attempt->data, noise + DATA_STREAM, &data));
    CLI_TRY(dot_with_random(attempt, &attempt->back, noise + IMAGE_STREAM, &image));
    attempt->result->adjoint_error = data != image ? fabs(data - image) / fabs(data) : 0;

    const struct bench_updates_wish wish = {.op = attempt->op,
                                            .subsets = attempt->wish->subsets,
                                            .repeat = attempt->wish->repeat,
                                            .log = &attempt->report.log,
                                            .progress = &attempt->report.progress};
    return wish.subsets > 0 ? bench_time_updates(&wish, &attempt->data, &attempt->result->updates) : LR_OK;
}

static lr_status create_operator(struct attempt *attempt, const lr_lors *lors)
{
    const struct bench_wish *wish = attempt->wish;
    struct bench_result *result = attempt->result;
    attempt->op = lr_operator_create(&(lr_operator_params){
        .lors = lors,
        .grid = &result->grid,
        .backend = result->backend,
        .mode = result->mode,
        .rays = wish->rays,
        .samples = {1, 1, 1},
        .store = LR_STORE_NO,
        .max_memory_bytes = wish->max_memory_bytes,
        .threads = wish->threads,
        .device = wish->device,
        .log = &attempt->report.log,
        .progress = &attempt->report.progress,
    });
    if (attempt->op == NULL) return report_reason(&attempt->report);
    const lr_operator_info *info = lr_operator_get_info(attempt->op);
    snprintf(result->device, sizeof(result->device), "%s", info->device);
    result->rays = info->rays;
    result->threads = info->threads;
    result->num_voxels = info->num_voxels;
    result->num_lors = info->num_lors;
    return LR_OK;
}

/* Counts the elements in the part that was timed. Compares rows of the whole grid with exact rows. */
static lr_status judge(struct attempt *attempt, struct bench_subject *subject)
{
    const struct bench_wish *wish = attempt->wish;
    struct bench_result *result = attempt->result;
    const struct bench_draw draw = {subject->lors, 0, wish->seed, wish->threads};
    const bool whole = lr_grid_same(&subject->whole.grid, &result->grid);
    struct bench_sample *sample = whole ? &subject->whole : &subject->part;
    CLI_TRY(bench_sample_take(sample, &draw, &result->grid, &attempt->report));
    /* The operator may have another grid, so its rows are computed for the voxels' points. */
    struct bench_accuracy *accuracy = &result->accuracy;
    struct comparison sums = {.sample = &subject->whole};
    const lr_row_sink sink = {compare_row, &sums};
    CLI_TRY(lr_operator_point_rows(attempt->op, (const double(*)[3])subject->whole.points_mm, subject->whole.num_rows,
                                   &sink));
    *accuracy = (struct bench_accuracy){
        .error = sqrt(sums.difference / sums.reference),
        .missed = (double)sums.missed / (double)sums.exact,
        .kept = (double)sums.own / (double)sums.exact,
        .num_voxels = subject->whole.num_rows,
    };

    result->elements = sample->mean;
    result->elements_error = sample->mean_error;
    result->elements_voxels = sample->num_voxels;
    result->lines = sample->primaries_per_voxel * result->rays * result->rays;
    return LR_OK;
}

/* Measures the grid, or smaller and smaller central parts of it if the command line leaves the size open. */
static lr_status measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *outer,
                         struct bench_result *result)
{
    const bool free_size = wish->size == BENCH_SIZE_AUTO && wish->grid[0] == 0;
    lr_grid next = result->grid;
    for (;;) {
        struct attempt attempt = {.outer = outer, .wish = wish, .result = result};
        attempt.report.log = (lr_log){catch_sentence, &attempt};
        attempt.report.progress = (lr_progress){pass_progress, &attempt};
        /* The next part has half the edge lengths and the same centre. A projection is limited if there is a next
         * part. */
        int size[3];
        bool is_smaller = false;
        for (int k = 0; k < 3; k++) {
            const int half = (next.size[k] + 1) / 2;
            size[k] = half < LEAST_EDGE ? next.size[k] : half;
            is_smaller = is_smaller || size[k] < next.size[k];
        }
        next = lr_grid_centred(size, result->workload->voxel_mm);
        attempt.is_limited = is_smaller && free_size;
        lr_status status = create_operator(&attempt, subject->lors);
        if (status == LR_OK) status = time_both(&attempt);
        attempt.is_limited = false;
        if (status == LR_OK) status = judge(&attempt, subject);
        lr_vector_destroy(&attempt.image);
        lr_vector_destroy(&attempt.back);
        lr_vector_destroy(&attempt.data);
        lr_operator_destroy(attempt.op);
        free(attempt.scratch);

        if (status != LR_CANCELLED || !attempt.too_slow || stop_is_asked()) return status;
        result->grid = next;
    }
}

lr_status bench_measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *report,
                        struct bench_result *result)
{
    const struct bench_workload *workload = result->workload;
    const int *size = wish->size == BENCH_SIZE_SMALL ? workload->small : workload->size;
    result->grid = lr_grid_centred(wish->grid[0] > 0 ? wish->grid : size, workload->voxel_mm);

    result->is_oracle = strcmp(result->backend, "cpu") == 0 && result->mode == LR_MODE_EXACT;
    result->status = measure(subject, wish, report, result);
    const bool is_usage = result->status == LR_USAGE;
    const bool lacks_mode = is_usage && result->mode == LR_MODE_EXACT && !wish->names_modes;
    const bool lacks_device = result->status == LR_NO_DEVICE && !wish->names_backends;
    /* Backend native has both modes, and needs modules that share an axial direction. */
    const bool lacks_scanner = strcmp(result->backend, "native") == 0 && is_usage && !wish->names_backends;
    result->outcome = result->status == LR_OK                       ? BENCH_MEASURED
                      : lacks_mode || lacks_device || lacks_scanner ? BENCH_SKIPPED
                                                                    : BENCH_FAILED;
    for (int k = 0; k < 3; k++) result->is_part = result->is_part || result->grid.size[k] < result->workload->size[k];
    if (result->status != LR_OK && result->reason[0] == '\0')
        snprintf(result->reason, sizeof(result->reason), "%s", lr_status_name(result->status));
    return result->status == LR_CANCELLED ? LR_CANCELLED : LR_OK;
}
