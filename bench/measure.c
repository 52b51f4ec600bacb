/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Times one operator in both directions, with random numbers in every voxel and every LOR so that
 * nothing can be left out, and tells how right it is. */
#include "bench.h"

#include "cli/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_EDGE = 4 };

/* A projection is given this long before its end is guessed at. */
static const double guess_after_s = 1.5;

/* One try at one grid. Its report keeps error sentences for the result. */
struct attempt {
    struct report report;
    struct report *outer;
    const struct bench_wish *wish;
    struct bench_result *result;
    lr_operator *op;
    lr_vector image, back; /* [num_voxels], where the operator computes */
    lr_vector data;        /* [num_lors], there too */
    float *scratch;        /* owned [CHUNK] on the host */
    bool is_limited;       /* a projection that would take too long is stopped */
    bool too_slow;
    double start_s;
};

/* --- sentences and progress --- */

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

/* Whether one projection will take longer than all of them may. */
static bool takes_too_long(const struct attempt *attempt, double done, double total)
{
    const double elapsed = report_seconds() - attempt->start_s;
    const double limit = attempt->wish->seconds;
    return elapsed > limit || (elapsed > guess_after_s && elapsed * total > limit * done);
}

static bool pass_progress(void *user, const char *what, double done, double total)
{
    struct attempt *attempt = user;
    if (attempt->is_limited && takes_too_long(attempt, done, total)) {
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
    /* The device's clock waits for the device: what is at its place may be under way yet. */
    seconds[1] = status == LR_OK ? lr_operator_device_seconds(attempt->op) : 0;
    seconds[0] = report_seconds() - attempt->start_s;
    return status == LR_OK && stop_is_asked() ? LR_CANCELLED : status;
}

static int ascending(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Sorts `values`. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), ascending);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

/* Once to compile shaders and fill caches, then as often as wished or as there is time for. */
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

/* x and y need not be kept apart from what they are projected into. */
enum { IMAGE_STREAM = 1, DATA_STREAM = 2 };

/* Random numbers are made and compared on the host, so many at a time. */
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

/* Of the last projections timed: back holds A^T y, data holds A x. */
static lr_status find_adjoint_error(const struct attempt *attempt)
{
    const uint64_t seed = 4 * attempt->wish->seed;
    double data, image;
    CLI_TRY(dot_with_random(attempt, &attempt->data, seed + DATA_STREAM, &data));
    CLI_TRY(dot_with_random(attempt, &attempt->back, seed + IMAGE_STREAM, &image));
    attempt->result->adjoint_error = data != image ? fabs(data - image) / fabs(data) : 0;
    return LR_OK;
}

static lr_status make_vectors(struct attempt *attempt)
{
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
    return attempt->scratch != NULL ? LR_OK : LR_FAILED;
}

static lr_status time_both(struct attempt *attempt)
{
    const uint64_t seed = 4 * attempt->wish->seed;
    CLI_TRY(make_vectors(attempt));
    CLI_TRY(fill(attempt, &attempt->image, seed + IMAGE_STREAM));
    CLI_TRY(fill(attempt, &attempt->data, seed + DATA_STREAM));
    CLI_TRY(time_direction(attempt, false));
    CLI_TRY(time_direction(attempt, true));
    CLI_TRY(find_adjoint_error(attempt));
    const struct bench_updates_wish wish = {.op = attempt->op,
                                            .subsets = attempt->wish->subsets,
                                            .repeat = attempt->wish->repeat,
                                            .log = &attempt->report.log,
                                            .progress = &attempt->report.progress};
    return wish.subsets > 0 ? bench_time_updates(&wish, &attempt->data, &attempt->result->updates) : LR_OK;
}

/* --- one grid --- */

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

/* Elements are counted in the part that was timed; how right they are is asked of the whole. */
static lr_status judge(struct attempt *attempt, struct bench_subject *subject)
{
    const struct bench_wish *wish = attempt->wish;
    struct bench_result *result = attempt->result;
    const struct bench_draw draw = {subject->lors, 0, wish->seed, wish->threads};
    const bool whole = setup_same_grid(&subject->whole.grid, &result->grid);
    struct bench_sample *sample = whole ? &subject->whole : &subject->part;
    CLI_TRY(bench_sample_take(sample, &draw, &result->grid, &attempt->report));
    CLI_TRY(bench_sample_compare(&subject->whole, attempt->op, &result->accuracy));
    result->elements = sample->mean;
    result->elements_error = sample->mean_error;
    result->elements_voxels = sample->num_voxels;
    result->lines = sample->primaries_per_voxel * result->rays * result->rays;
    return LR_OK;
}

static lr_status try_grid(struct attempt *attempt, struct bench_subject *subject)
{
    lr_status status = create_operator(attempt, subject->lors);
    if (status == LR_OK) status = time_both(attempt);
    attempt->is_limited = false;
    if (status == LR_OK) status = judge(attempt, subject);
    lr_vector_destroy(&attempt->image);
    lr_vector_destroy(&attempt->back);
    lr_vector_destroy(&attempt->data);
    lr_operator_destroy(attempt->op);
    free(attempt->scratch);
    return status;
}

/* --- all grids --- */

static void start_grid(const struct bench_wish *wish, struct bench_result *result)
{
    const struct bench_workload *workload = result->workload;
    const int *size = wish->size == BENCH_SIZE_SMALL ? workload->small : workload->size;
    result->grid = lr_grid_centred(wish->grid[0] > 0 ? wish->grid : size, workload->voxel_mm);
}

/* Half the edges, about the same centre. Returns whether there was anything to take away. */
static bool shrink(lr_grid *grid)
{
    int size[3];
    bool smaller = false;
    for (int k = 0; k < 3; k++) {
        const int half = (grid->size[k] + 1) / 2;
        size[k] = half < LEAST_EDGE ? grid->size[k] : half;
        smaller = smaller || size[k] < grid->size[k];
    }
    *grid = lr_grid_centred(size, (const double[3]){grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2]});
    return smaller;
}

/* Tries smaller and smaller central parts where the size is left to us. */
static lr_status measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *outer,
                         struct bench_result *result)
{
    const bool free_size = wish->size == BENCH_SIZE_AUTO && wish->grid[0] == 0;
    lr_grid next = result->grid;
    for (;;) {
        struct attempt attempt = {.outer = outer, .wish = wish, .result = result};
        attempt.report.log = (lr_log){catch_sentence, &attempt};
        attempt.report.progress = (lr_progress){pass_progress, &attempt};
        attempt.is_limited = shrink(&next) && free_size;
        const lr_status status = try_grid(&attempt, subject);
        if (status != LR_CANCELLED || !attempt.too_slow || stop_is_asked()) return status;
        result->grid = next;
    }
}

/* Backend native is for modules that share an axial direction, and has both modes. */
static bool serves_other_scanners(const struct bench_result *result)
{
    return strcmp(result->backend, "native") == 0 && result->status == LR_USAGE;
}

static enum bench_outcome judge_status(const struct bench_wish *wish, const struct bench_result *result)
{
    const bool lacks_mode = result->status == LR_USAGE && result->mode == LR_MODE_EXACT && !wish->names_modes;
    const bool lacks_device = result->status == LR_NO_DEVICE && !wish->names_backends;
    const bool lacks_scanner = serves_other_scanners(result) && !wish->names_backends;
    if (result->status == LR_OK) return BENCH_MEASURED;
    return lacks_mode || lacks_device || lacks_scanner ? BENCH_SKIPPED : BENCH_FAILED;
}

lr_status bench_measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *report,
                        struct bench_result *result)
{
    start_grid(wish, result);
    result->is_oracle = strcmp(result->backend, "cpu") == 0 && result->mode == LR_MODE_EXACT;
    result->status = measure(subject, wish, report, result);
    result->outcome = judge_status(wish, result);
    for (int k = 0; k < 3; k++) result->is_part = result->is_part || result->grid.size[k] < result->workload->size[k];
    if (result->status != LR_OK && result->reason[0] == '\0')
        snprintf(result->reason, sizeof(result->reason), "%s", lr_status_name(result->status));
    return result->status == LR_CANCELLED ? LR_CANCELLED : LR_OK;
}
