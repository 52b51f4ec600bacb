/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench direct: measures projections of the family `direct` in the cases of its papers, and the same projections by
 * Fourier transforms. */
#include "cli/direct.h"
#include "bench.h"
#include "cli/verbs.h"
#include "fft/fft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIRECT_NUM_WORKS = 3,
    DIRECT_NUM_CASES = 16,
    DIRECT_NUM_VARIANTS = 15,
    DIRECT_MOST_PEERS = 4,
    DIRECT_MOST_REPEATS = 101
};

/* A case of the papers named in lr/direct.h. */
struct direct_case {
    const char *workload; /* the name of the workload in --workload */
    const char *name;     /* name of the case; NULL = the name of its resolution model */
    int size[3];
    double voxel_mm;
    lr_resolution resolution;
    int azimuths, tilts;
    bool has_ramla; /* iterations of RAMLA are measured too */
};

/* One way to compute projections. */
struct direct_variant {
    const char *name;          /* "compute, textures" */
    const char *backend;       /* NULL: auto */
    lr_direct_storage storage; /* storage, for backends compute and cuda */
    lr_direct_variant way;     /* only for backend cuda */
};

/* Times of one view, or of as many views as there was time for. */
struct direct_measured {
    int views;
    double wall_s, device_s, offsets; /* per view */
};

/* Seconds per view of an iteration, divided as in table IV of paper 1. Images are copied to the device and back for
 * every projection. Discrepancy and update are computed on the host. */
struct direct_stages {
    int views;                                   /* number of views measured; 0 = not measured */
    double to_device[2], project[2], to_host[2]; /* [0] forward, [1] back */
    double discrepancy, update;
};

struct direct_outcome {
    const struct direct_case *what;
    const struct direct_variant *variant;
    char device[160];
    struct direct_measured single[DIRECT_NUM_WORKS], batch[DIRECT_NUM_WORKS];
    double ramla_s, ramla_device_s; /* 0 = not measured */
    double load_s;                  /* time before the iterations, for the data of all views and their sensitivities */
    struct direct_stages stages;
    struct fft_result peers[DIRECT_MOST_PEERS]; /* only for the first variant of a case */
    int num_peers;
    lr_direct_attributes attributes[2]; /* [0] forward, [1] back; only for backend cuda with --paper */
    bool has_attributes;
};

struct direct_bench {
    struct report *report;
    const struct direct_variant *variants[DIRECT_NUM_VARIANTS]; /* the chosen variants */
    int num_variants;
    bool chosen[5];   /* the chosen workloads */
    const char *name; /* text that the names of measured cases contain; NULL = all cases */
    bool is_paper;    /* also measures the other figures of the papers' tables */
    bool has_peers;   /* also measures Fourier transforms */
    int device, threads, repeat;
    double seconds;
    const struct direct_case *without_cuda; /* the case in which CUDA was found to be missing; NULL = none. Variants of
                                               CUDA are reported as skipped in this case, and left out in later ones */
    struct direct_outcome outcomes[DIRECT_NUM_CASES * DIRECT_NUM_VARIANTS];
    int num_outcomes;
};

#define ON_BUFFERS(name_, backend_, way_)                                                                              \
    {                                                                                                                  \
        name_ ", buffers", backend_, LR_DIRECT_BUFFERS, way_                                                           \
    }
#define ON_TEXTURES(name_, backend_, way_)                                                                             \
    {                                                                                                                  \
        name_ ", textures", backend_, LR_DIRECT_TEXTURES, way_                                                         \
    }
#define ON_BOTH(name_, backend_, way_) ON_BUFFERS(name_, backend_, way_), ON_TEXTURES(name_, backend_, way_)

static const struct direct_variant variants[] = {
    ON_BOTH("auto", NULL, LR_DIRECT_FASTEST),
    ON_BOTH("compute", "compute", LR_DIRECT_FASTEST),
    ON_BUFFERS("cuda, bands", "cuda", LR_DIRECT_BANDS),
    ON_BUFFERS("cuda, columns", "cuda", LR_DIRECT_COLUMNS),
    ON_BOTH("cuda, threads", "cuda", LR_DIRECT_THREADS),
    ON_BOTH("cuda, instructions", "cuda", LR_DIRECT_INSTRUCTIONS),
    ON_BOTH("cuda, shared memory", "cuda", LR_DIRECT_SHARED_MEMORY),
    ON_BOTH("cuda, texture cache", "cuda", LR_DIRECT_TEXTURE_CACHE),
    {"cpu", "cpu", LR_DIRECT_BUFFERS, LR_DIRECT_FASTEST},
};
_Static_assert(sizeof variants / sizeof variants[0] == DIRECT_NUM_VARIANTS, "one outcome of each variant");

enum { BOTH = 2 /* index of "both" in --storage */ };

/* Fills bench->variants with the variants that --backend, --storage and --variant name. */
static void choose_variants(struct direct_bench *bench, struct cli_args *args)
{
    const char *named = args_chosen(args, "--backend");
    const lr_direct_variant way = (lr_direct_variant)(args_word(args, "--variant", direct_variant_names, -1) + 1);
    const bool takes_all = strcmp(named, "all") == 0;
    const int storage = args_word(args, "--storage", NULL, takes_all ? BOTH : LR_DIRECT_BUFFERS);
    const bool is_on_buffers = way >= LR_DIRECT_BANDS && way <= LR_DIRECT_COLUMNS; /* these variants need buffers */
    if (way != LR_DIRECT_FASTEST && !(strcmp(named, "cuda") == 0 || takes_all)) {
        args_complain(args, "--variant is for --backend cuda or all");
    } else if (is_on_buffers && storage == (int)LR_DIRECT_TEXTURES) {
        args_complain(args,
                      "--variant %s works on buffers, not on textures: take --storage buffers, or "
                      "threads, instructions, shared-memory or texture-cache",
                      args_text(args, "--variant"));
    }
    if (args_has(args, "--storage") && strcmp(named, "cpu") == 0) {
        args_complain(args, "--storage is for --backend auto, compute, cuda or all: cpu keeps images "
                            "in memory of its own");
    }

    for (int k = 0; k < DIRECT_NUM_VARIANTS; k++) {
        const struct direct_variant *variant = &variants[k];
        const char *backend = variant->backend != NULL ? variant->backend : "auto";
        const bool has_backend = strcmp(named, backend) == 0 || (takes_all && variant->backend != NULL);
        const bool has_storage = strcmp(backend, "cpu") == 0 || storage == BOTH || storage == (int)variant->storage;
        const bool has_way = way == LR_DIRECT_FASTEST || variant->way == LR_DIRECT_FASTEST || way == variant->way;
        if (has_backend && has_storage && has_way) bench->variants[bench->num_variants++] = variant;
    }
}

static bool is_cuda(const struct direct_variant *variant)
{
    return variant->backend != NULL && strcmp(variant->backend, "cuda") == 0;
}

/* Makes an operator of all views of the case, or only of `view` if that is not negative. resolution: NULL = that of the
 * case. errors: NULL, logged. */
static lr_operator *open_case(const struct direct_bench *bench, const struct direct_outcome *outcome,
                              const lr_resolution *resolution, int view)
{
    const struct direct_case *what = outcome->what;
    const double voxel_mm[3] = {what->voxel_mm, what->voxel_mm, what->voxel_mm};
    const lr_grid grid = lr_grid_centred(what->size, voxel_mm);
    lr_view views[120];
    lr_view_set set;
    const lr_view_set wanted = {what->azimuths, what->tilts, 0};
    if (lr_view_set_complete(&wanted, &set, &bench->report->log) != LR_OK) return NULL;
    for (int k = 0; k < lr_view_set_count(&set); k++) views[k] = lr_view_set_at(&set, k);
    return lr_direct_create(
        &(lr_direct_params){.grid = &grid,
                            .views = view < 0 ? views : views + view,
                            .num_views = view < 0 ? lr_view_set_count(&set) : 1,
                            .kernel = {.resolution = resolution != NULL ? *resolution : what->resolution},
                            /* if CUDA is missing, the operator has backend compute, and the variant is skipped */
                            .backend = is_cuda(outcome->variant) ? "cuda,compute" : outcome->variant->backend,
                            .threads = bench->threads,
                            .device = bench->device,
                            .storage = outcome->variant->storage,
                            .variant = outcome->variant->way,
                            .log = &bench->report->log});
}

/* Largest size of a batch of transforms. */
#define BATCH_BYTES ((int64_t)128 << 20)

/* Measures convolutions by Fourier transforms, for an oblique view. If the case's kernel varies, its kernel at the
 * centre is used. */
static lr_status compare_with_transforms(const struct direct_bench *bench, const float *image,
                                         struct direct_outcome *outcome)
{
    const struct direct_case *what = outcome->what;
    const lr_log *log = &bench->report->log;
    const int num_views = what->azimuths * what->tilts;
    lr_resolution flat = what->resolution;
    flat.radial_mm = lr_resolution_radial_mm(&what->resolution, 0);
    flat.model = LR_RADIAL_INVARIANT;
    lr_operator *op = open_case(bench, outcome, &flat, num_views > 7 ? 7 : 0);
    if (op == NULL) return report_reason(bench->report);
    const lr_operator_info *info = lr_operator_get_info(op);
    const lr_direct_info *family = lr_direct_get_info(op);
    lr_direct_tables *tables = lr_direct_tables_create(&(lr_direct_tables_params){
        .grid = &family->grid, .view = family->views[0], .kernel = {.resolution = flat}, .log = log});
    float *projected = common_floats(bench->report, info->num_voxels, "a projection");
    const lr_vector x = lr_vector_of_floats(image, info->num_voxels);
    lr_vector y = lr_vector_of_floats(projected, info->num_voxels);
    lr_status status = tables != NULL && projected != NULL ? lr_operator_forward(op, NULL, &x, &y) : LR_FAILED;
    const int64_t fit = BATCH_BYTES / (info->num_voxels * 2 * (int64_t)sizeof(float));
    const struct fft_case all = {.tables = tables,
                                 .image = image,
                                 .projected = projected,
                                 .volumes = fit < num_views ? (int)fit : num_views,
                                 .threads = info->threads,
                                 .repeat = bench->repeat,
                                 .seconds = 0.25 * bench->seconds,
                                 .log = log};
    for (const struct fft_library *library = fft_libraries; status == LR_OK && library->name != NULL; library++) {
        const char *missing = fft_missing(library);
        for (int padded = 0; missing == NULL && status == LR_OK && padded < 2; padded++) {
            status = fft_compare(library, &all, padded != 0, &outcome->peers[outcome->num_peers]);
            if (status == LR_OK) outcome->num_peers++;
        }
        if (missing != NULL && bench->num_outcomes == 0)
            report_info(bench->report, "%s is left out: %s", library->name, missing);
    }
    free(projected);
    lr_direct_tables_destroy(tables);
    lr_operator_destroy(op);
    return status;
}

/* --- the first paper's loop, which takes images to the device and back for every projection --- */

/* One projection, with the copies to the device and back. */
struct trip {
    lr_operator *op;
    int32_t view;
    bool is_back;
    double to_host_s; /* time to copy an image from the device to the host */
};

static lr_status go(const struct trip *trip, const float *in, float *out, struct direct_stages *stages)
{
    const int64_t count = lr_operator_get_info(trip->op)->num_voxels;
    const lr_selection part = {.pairs = &trip->view, .num_pairs = 1};
    const lr_vector x = lr_vector_of_floats(in, count);
    lr_vector y = lr_vector_of_floats(out, count);
    const double begin = report_seconds();
    CLI_TRY((trip->is_back ? lr_operator_back : lr_operator_forward)(trip->op, &part, &x, &y));
    const double device = lr_operator_device_seconds(trip->op);
    const double whole = report_seconds() - begin;
    const double moved = device > 0 && device < whole ? whole - device : 0;
    const double to_host = moved < trip->to_host_s ? moved : trip->to_host_s;
    stages->project[trip->is_back] += whole - moved;
    stages->to_host[trip->is_back] += to_host;
    stages->to_device[trip->is_back] += moved - to_host;
    return LR_OK;
}

static lr_status visit(const struct trip *trip, float *image, float *work[2], struct direct_stages *stages)
{
    const int64_t count = lr_operator_get_info(trip->op)->num_voxels;
    struct trip back = *trip;
    float *histo = work[0], *correction = work[1];
    back.is_back = true;
    CLI_TRY(go(trip, image, histo, stages));

    /* Times the host's computation histo = n (y / (n histo) - 1), with y = 1 and n = 1. */
    double begin = report_seconds();
    for (int64_t k = 0; k < count; k++) histo[k] = histo[k] > 1e-30f ? 1.0f / histo[k] - 1.0f : 0.0f;
    stages->discrepancy += report_seconds() - begin;
    CLI_TRY(go(&back, histo, correction, stages));
    begin = report_seconds();
    for (int64_t k = 0; k < count; k++) {
        const float factor = 1.0f + 0.5f * correction[k];
        image[k] *= factor > 0.0f ? factor : 0.0f;
    }
    stages->update += report_seconds() - begin;
    return LR_OK;
}

/* Fills in outcome->stages from as many views as there is time for. The contents of `image` change. */
static lr_status measure_stages(const struct direct_bench *bench, lr_operator *op, float *image,
                                struct direct_outcome *outcome)
{
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    const int num_views = lr_direct_get_info(op)->num_views;
    float *work[2] = {common_floats(bench->report, count, "a projection"),
                      common_floats(bench->report, count, "a projection")};
    struct direct_stages *stages = &outcome->stages, warm = {0};
    struct trip trip = {.op = op};
    lr_status status = work[0] != NULL && work[1] != NULL ? LR_OK : LR_FAILED;

    /* Time to read an image that has already been computed. */
    const lr_vector x = lr_vector_of_floats(image, count);
    const lr_direct_task task = {.work = LR_DIRECT_WORK_READING, .image = &x};
    for (int k = 0; status == LR_OK && k < 3; k++) {
        lr_direct_timing timing;
        status = lr_direct_time(op, &task, &timing);
        if (status == LR_OK && (k == 0 || timing.wall_s < trip.to_host_s)) trip.to_host_s = timing.wall_s;
    }
    if (status == LR_OK) status = visit(&trip, image, work, &warm);
    const double begin = report_seconds();
    while (status == LR_OK && stages->views < 20 * num_views &&
           (stages->views == 0 || report_seconds() - begin < bench->seconds)) {
        trip.view = stages->views % num_views;
        status = visit(&trip, image, work, stages);
        if (status == LR_OK) stages->views++;
    }
    double *const sums[] = {&stages->to_device[0], &stages->to_device[1], &stages->project[0],  &stages->project[1],
                            &stages->to_host[0],   &stages->to_host[1],   &stages->discrepancy, &stages->update};
    for (size_t n = 0; status == LR_OK && n < sizeof(sums) / sizeof(sums[0]); n++) *sums[n] /= stages->views;
    free(work[1]);
    free(work[0]);
    return status;
}

/* --- cases --- */

#define CLINICAL(model_)                                                                                               \
    {                                                                                                                  \
        "clinical", NULL, {144, 144, 48}, 4, {.tof_ps = 400, .model = model_}, 40, 3, true                             \
    }
/* The caption of figure 4 states 144 x 144 x 48 voxels for all sizes. In the paper's text, there are eight times as
 * many voxels of 2 mm as voxels of 4 mm. Only then can the work grow by a factor of 64. All images here therefore have
 * the same extent in mm. */
#define FIGURE4(name_, voxel, tof, radial, axial)                                                                      \
    {                                                                                                                  \
        "figure4", name_, {576 / (voxel), 576 / (voxel), 192 / (voxel)}, voxel,                                        \
            {.tof_ps = tof, .radial_mm = radial, .axial_mm = axial}, 40, 1, false                                      \
    }

static const struct direct_case cases[DIRECT_NUM_CASES] = {
    CLINICAL(LR_RADIAL_INVARIANT),
    CLINICAL(LR_RADIAL_VARIANT1),
    CLINICAL(LR_RADIAL_VARIANT2),
    CLINICAL(LR_RADIAL_VARIANT3),
    {"caches",
     "300 ps, 5 to 6 mm, axial 5 mm",
     {144, 144, 62},
     4,
     {.tof_ps = 300, .model = LR_RADIAL_LINEAR, .radial_mm = 5, .radial_edge_mm = 6, .axial_mm = 5},
     120,
     1,
     false},
    {"large",
     "900 ps, 10 to 100 mm, axial 10 mm",
     {144, 144, 48},
     4,
     {.tof_ps = 900, .model = LR_RADIAL_LINEAR, .radial_mm = 10, .radial_edge_mm = 100, .axial_mm = 10},
     40,
     1,
     false},
    FIGURE4("300 ps, 10 mm", 4, 300, 10, 5),
    FIGURE4("600 ps, 10 mm", 4, 600, 10, 5),
    FIGURE4("900 ps, 10 mm", 4, 900, 10, 5),
    FIGURE4("1200 ps, 10 mm", 4, 1200, 10, 5),
    FIGURE4("300 ps, 5 mm", 4, 300, 5, 5),
    FIGURE4("300 ps, 15 mm", 4, 300, 15, 5),
    FIGURE4("300 ps, 20 mm", 4, 300, 20, 5),
    FIGURE4("375 ps, 6.5 mm", 4, 375, 6.5, 6.5),
    FIGURE4("375 ps, 6.5 mm, 3 mm voxels", 3, 375, 6.5, 6.5),
    FIGURE4("375 ps, 6.5 mm, 2 mm voxels", 2, 375, 6.5, 6.5),
};

/* A view by backend cpu may take this many times --seconds if other backends are measured too. */
enum { MOST_CPU_TIMES = 5 };

static const char *const model_names[] = {"invariant 5.8 mm", "variant 1", "variant 2", "variant 3"};

static const char *case_name(const struct direct_case *what)
{
    return what->name != NULL ? what->name : model_names[what->resolution.model];
}

static const char *const workload_names[] = {"clinical", "caches", "large", "figure4", NULL};

/* --- measuring --- */

/* Seconds by the device's clock if there is one, else wall time. */
static double best_seconds(const struct direct_measured *measured)
{
    return measured->device_s > 0 ? measured->device_s : measured->wall_s;
}

static int compare_seconds(const void *a, const void *b)
{
    const lr_direct_timing *left = a, *right = b;
    const double l = left->device_s > 0 ? left->device_s : left->wall_s;
    const double r = right->device_s > 0 ? right->device_s : right->wall_s;
    return (l > r) - (l < r);
}

/* Measures the median of as many runs as there is time for. */
static lr_status measure(const struct direct_bench *bench, lr_operator *op, const lr_direct_task *task,
                         struct direct_measured *measured)
{
    lr_direct_timing timings[DIRECT_MOST_REPEATS];
    double spent_s = 0;
    int runs = 0;
    while (runs < bench->repeat && (runs == 0 || spent_s < bench->seconds)) {
        CLI_TRY(lr_direct_time(op, task, &timings[runs]));
        spent_s += timings[runs++].wall_s;
    }
    qsort(timings, (size_t)runs, sizeof(timings[0]), compare_seconds);
    const lr_direct_timing *median = &timings[runs / 2];
    measured->views = task->num_views;
    measured->wall_s = median->wall_s / task->num_views;
    measured->device_s = median->device_s / task->num_views;
    measured->offsets = (double)median->num_offsets / task->num_views;
    return LR_OK;
}

static lr_status measure_works(const struct direct_bench *bench, lr_operator *op, struct direct_outcome *outcome)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    int *views = calloc((size_t)num_views, sizeof(*views));
    lr_status status = views != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < num_views; k++) views[k] = k;
    for (int work = 0; status == LR_OK && work < DIRECT_NUM_WORKS; work++) {
        lr_direct_task task = {.work = (lr_direct_work)work, .views = views, .num_views = 1};
        /* Measures one view. The first run counts only if there is no time for other runs. */
        struct direct_measured *single = &outcome->single[work];
        lr_direct_timing first;
        status = lr_direct_time(op, &task, &first);
        if (status != LR_OK) break;
        *single = (struct direct_measured){1, first.wall_s, first.device_s, (double)first.num_offsets};
        if (first.wall_s < bench->seconds) status = measure(bench, op, &task, single);

        /* Number of views for which the time suffices. */
        const double fit = bench->seconds / (single->wall_s > 0 ? single->wall_s : 1e-9);
        task.num_views = fit < 1 ? 1 : fit < num_views ? (int)fit : num_views;

        outcome->batch[work] = outcome->single[work];
        if (status == LR_OK && task.num_views > 1) /* one run, in which the operator builds its tables */
            status = lr_direct_time(op, &task, &(lr_direct_timing){0});
        if (status == LR_OK && task.num_views > 1) status = measure(bench, op, &task, &outcome->batch[work]);
    }
    free(views);
    return status;
}

/* The first iteration builds tables, so only the second one is timed. */
static lr_status keep_seconds(void *user, const lr_iteration *done)
{
    struct direct_outcome *outcome = user;
    if (done->number == 1) /* load_s holds the time at which loading began */
        outcome->load_s = report_seconds() - done->seconds - outcome->load_s;
    outcome->ramla_s = done->seconds;
    outcome->ramla_device_s = done->device_seconds;
    return LR_OK;
}

/* Makes two iterations over all views, each with the same counts, if there is time. */
static lr_status measure_ramla(const struct direct_bench *bench, lr_operator *op, const float *image,
                               struct direct_outcome *outcome)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    const double view_s = outcome->single[0].wall_s + outcome->single[1].wall_s;
    if (!outcome->what->has_ramla || 2 * view_s * num_views > 2 * bench->seconds) return LR_OK;
    float *counts = common_floats(bench->report, count * num_views, "counts");
    if (counts == NULL) return LR_FAILED;
    const lr_vector data = lr_vector_of_floats(counts, count * num_views);
    for (int view = 0; view < num_views; view++) memcpy(counts + view * count, image, (size_t)count * sizeof(*image));
    int32_t *subset_of = num_views > 0 ? calloc((size_t)num_views, sizeof(*subset_of)) : NULL;
    lr_vector result = {0};
    lr_status status = lr_vector_create(&(lr_vector_params){.count = count, .log = &bench->report->log}, &result);
    if (status == LR_OK && subset_of == NULL) status = LR_FAILED;
    for (int view = 0; subset_of != NULL && view < num_views; view++) subset_of[view] = view;
    outcome->load_s = report_seconds();
    if (status == LR_OK) {
        status = lr_recon(&(lr_recon_params){.op = op,
                                             .data = &data,
                                             .iterations = 2,
                                             .subsets = num_views,
                                             .subset_of = subset_of,
                                             .algorithm = LR_ALGORITHM_RAMLA,
                                             .without_fit = true,
                                             .iteration = keep_seconds,
                                             .user = outcome,
                                             .log = &bench->report->log,
                                             .progress = &bench->report->progress},
                          &result);
    }
    lr_vector_destroy(&result);
    free(subset_of);
    free(counts);
    return status;
}

static lr_status measure_open(const struct direct_bench *bench, lr_operator *op, struct direct_outcome *outcome)
{
    static const int first_view = 0;
    const struct direct_case *what = outcome->what;
    const lr_operator_info *info = lr_operator_get_info(op);
    float *image = malloc((size_t)info->num_voxels * sizeof(*image));
    if (image == NULL) return report_error(bench->report, LR_FAILED, "no memory for an image");
    snprintf(outcome->device, sizeof(outcome->device), "%s", info->device);
    for (int64_t k = 0; k < info->num_voxels; k++) image[k] = (float)(0.5 + common_random(1, k));
    /* The image is copied to the device once. */
    const lr_vector x = lr_vector_of_floats(image, info->num_voxels);
    lr_direct_timing timing;
    lr_status status = lr_direct_time(op, &(lr_direct_task){LR_DIRECT_WORK_READING, &first_view, 1, &x}, &timing);
    if (status == LR_OK) status = measure_works(bench, op, outcome);

    /* Fourier transforms are measured once per case. */
    bool has_peers = bench->has_peers;
    for (int k = 0; k < bench->num_outcomes; k++) has_peers = has_peers && bench->outcomes[k].what != what;
    if (status == LR_OK && has_peers) status = compare_with_transforms(bench, image, outcome);
    if (status == LR_OK) status = measure_ramla(bench, op, image, outcome);
    const bool has_stages = what->has_ramla && what->resolution.model <= LR_RADIAL_VARIANT1;
    if (status == LR_OK && bench->is_paper && has_stages) status = measure_stages(bench, op, image, outcome);

    /* Resources that CUDA's kernels use on the device. */
    outcome->has_attributes = status == LR_OK && bench->is_paper && strcmp(info->backend, "cuda") == 0;
    for (int back = 0; outcome->has_attributes && status == LR_OK && back < 2; back++) {
        const lr_direct_task task = {back ? LR_DIRECT_WORK_BACK : LR_DIRECT_WORK_FORWARD, &first_view, 1, &x};
        status = lr_direct_time(op, &task, &timing);
        if (status == LR_OK) status = lr_direct_device_attributes(op, &outcome->attributes[back]);
    }
    free(image);
    return status;
}

/* --- reports --- */

static double flop_share(const struct direct_outcome *outcome, const struct direct_measured *measured)
{
    const struct direct_case *what = outcome->what;
    const double ceiling = bench_flop_ceiling(outcome->device);
    const double voxels = (double)what->size[0] * what->size[1] * what->size[2];
    return ceiling > 0 ? 2 * voxels * measured->offsets / best_seconds(measured) / ceiling : 0;
}

/* Reports an outcome during a long run. */
static void tell(const struct direct_bench *bench, const struct direct_outcome *outcome)
{
    report_clear(bench->report);
    report_info(bench->report, "%s, %s; %s: %.4g ms forward, %.4g ms back a view", outcome->what->workload,
                case_name(outcome->what), outcome->variant->name, 1e3 * best_seconds(&outcome->batch[0]),
                1e3 * best_seconds(&outcome->batch[1]));
}

/* --- the verb --- */

static bool is_cpu(const struct direct_variant *variant)
{
    return variant->backend != NULL && strcmp(variant->backend, "cpu") == 0;
}

static void report_skipped(const struct direct_bench *bench, const struct direct_variant *variant, lr_status status)
{
    const char *lacks = is_cuda(variant) ? "no CUDA device" : "no device";
    report_info(bench->report, "%s is skipped: %s", variant->name,
                status == LR_NO_DEVICE ? lacks : "not with this kernel");
}

/* True if backend cpu would delay the other backends for too long. */
static bool is_too_long(const struct direct_bench *bench, const struct direct_case *what,
                        const struct direct_variant *variant)
{
    /* The expected time of a view by cpu is the product of two figures: cpu's time per unit of work, measured in
     * another case; and the work of this case, measured with another backend. */
    double second_work = 0, work = 0;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        const int *size = outcome->what->size;
        const double own = outcome->batch[0].offsets * (double)size[0] * size[1] * size[2];
        if (is_cpu(outcome->variant))
            second_work = best_seconds(&outcome->single[0]) / own;
        else if (outcome->what == what)
            work = own;
    }
    const double expected_s = second_work * work;
    const bool is_long = is_cpu(variant) && expected_s > MOST_CPU_TIMES * bench->seconds;
    if (is_long) {
        report_info(bench->report, "%s, cpu is skipped: a view would take about %.0f s (--backend cpu times it)",
                    case_name(what), expected_s);
    }
    return is_long;
}

static lr_status measure_case(struct direct_bench *bench, const struct direct_case *what,
                              const struct direct_variant *variant)
{
    struct direct_outcome *outcome = &bench->outcomes[bench->num_outcomes];
    *outcome = (struct direct_outcome){.what = what, .variant = variant};
    lr_operator *op = open_case(bench, outcome, NULL, -1);
    /* Another backend may have replaced the named one, and cpu has no textures. */
    const char *backend = op != NULL ? lr_operator_get_info(op)->backend : "";
    const bool is_named = variant->backend != NULL
                              ? strcmp(backend, variant->backend) == 0
                              : variant->storage == LR_DIRECT_BUFFERS || strcmp(backend, "cpu") != 0;
    const bool is_other = op != NULL && !is_named;
    const lr_status status = is_other     ? LR_NO_DEVICE
                             : op != NULL ? measure_open(bench, op, outcome)
                                          : report_reason(bench->report);
    lr_operator_destroy(op);
    if ((status == LR_NO_DEVICE || status == LR_USAGE) && (is_other || bench->num_variants > 1)) {
        report_skipped(bench, variant, status);
        if (status == LR_NO_DEVICE && is_cuda(variant)) bench->without_cuda = what;
        return LR_OK;
    }
    CLI_TRY(status);
    tell(bench, outcome);
    bench->num_outcomes++;
    return LR_OK;
}

static bool is_chosen(const struct direct_bench *bench, const struct direct_case *what)
{
    if (bench->name != NULL && strstr(case_name(what), bench->name) == NULL) return false;
    for (int w = 0; workload_names[w] != NULL; w++)
        if (bench->chosen[w] && strcmp(what->workload, workload_names[w]) == 0) return true;
    return false;
}

static void write_measured(struct json *json, const char *key, const struct direct_measured *measured)
{
    json_open(json, key, '{');
    json_int(json, "views", measured->views);
    bench_json_seconds(json, measured->wall_s, measured->device_s);
    json_close(json, '}');
}

static void write_seconds(struct json *json, const char *key, double wall_s, double device_s)
{
    json_open(json, key, '{');
    bench_json_seconds(json, wall_s, device_s);
    json_close(json, '}');
}

static void write_stages(struct json *json, const struct direct_stages *stages)
{
    json_open(json, "stages", '{');
    json_int(json, "views", stages->views);
    for (int back = 0; back < 2; back++) {
        json_open(json, back ? "back" : "forward", '{');
        json_number(json, "to_device_seconds", stages->to_device[back]);
        json_number(json, "project_seconds", stages->project[back]);
        json_number(json, "to_host_seconds", stages->to_host[back]);
        json_close(json, '}');
    }
    json_number(json, "discrepancy_seconds", stages->discrepancy);
    json_number(json, "update_seconds", stages->update);
    json_close(json, '}');
}

static void write_attributes(struct json *json, const char *key, const lr_direct_attributes *found)
{
    json_open(json, key, '{');
    json_int(json, "registers", found->registers);
    json_int(json, "threads", found->threads);
    json_int(json, "constant_bytes", found->constant_bytes);
    json_int(json, "local_bytes", found->local_bytes);
    json_int(json, "shared_bytes", found->shared_bytes);
    json_int(json, "blocks", found->blocks);
    json_number(json, "occupancy", found->occupancy);
    json_close(json, '}');
}

static void write_figures(const void *user, struct json *json)
{
    static const char *const names[DIRECT_NUM_WORKS][2] = {
        {"forward", "forward_batch"}, {"back", "back_batch"}, {"tables", "tables_batch"}};
    const struct direct_bench *bench = user;
    json_bool(json, "paper", bench->is_paper);
    json_open(json, "results", '[');
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        json_open(json, NULL, '{');
        json_text(json, "workload", outcome->what->workload);
        json_text(json, "case", case_name(outcome->what));
        json_text(json, "variant", outcome->variant->name);
        json_text(json, "device", outcome->device);
        json_number(json, "offsets", outcome->batch[0].offsets);
        for (int work = 0; work < DIRECT_NUM_WORKS; work++) {
            write_measured(json, names[work][0], &outcome->single[work]);
            write_measured(json, names[work][1], &outcome->batch[work]);
        }
        json_number(json, "forward_flop_share", bench_unless_zero(flop_share(outcome, &outcome->batch[0])));
        json_number(json, "back_flop_share", bench_unless_zero(flop_share(outcome, &outcome->batch[1])));
        write_seconds(json, "ramla", outcome->ramla_s, outcome->ramla_device_s);
        json_number(json, "load_seconds", bench_unless_zero(outcome->load_s));
        json_open(json, "fft", '[');
        for (int n = 0; n < outcome->num_peers; n++) {
            const struct fft_result *peer = &outcome->peers[n];
            json_open(json, NULL, '{');
            json_text(json, "library", peer->library->name);
            json_text(json, "name", peer->name);
            json_bool(json, "padded", peer->is_padded);
            json_ints(json, "size", peer->size, 3);
            write_seconds(json, "single", peer->single.wall_s, peer->single.device_s);
            write_seconds(json, "batch", peer->batch.wall_s, peer->batch.device_s);
            json_int(json, "volumes", peer->volumes);
            json_number(json, "error", peer->error);
            json_close(json, '}');
        }
        json_close(json, ']');
        if (outcome->stages.views > 0) write_stages(json, &outcome->stages);
        if (outcome->has_attributes) {
            write_attributes(json, "forward_attributes", &outcome->attributes[0]);
            write_attributes(json, "back_attributes", &outcome->attributes[1]);
        }
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Measures the chosen variants of all cases. */
static lr_status measure_chosen(struct direct_bench *bench)
{
    for (int k = 0; k < DIRECT_NUM_CASES; k++) {
        for (int n = 0; is_chosen(bench, &cases[k]) && n < bench->num_variants; n++) {
            const struct direct_variant *variant = bench->variants[n];
            /* If one variant of CUDA finds no device, no variant in any case can find one. */
            const struct direct_case *what = &cases[k];
            const bool lacks = bench->without_cuda != NULL && is_cuda(variant);
            if (lacks && bench->without_cuda == what) report_skipped(bench, variant, LR_NO_DEVICE);
            if (!lacks && !is_too_long(bench, what, variant)) CLI_TRY(measure_case(bench, what, variant));
        }
    }
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    static const int64_t repeats[2] = {1, DIRECT_MOST_REPEATS};
    struct direct_bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    bench->report = args->report;
    bench->is_paper = args_has(args, "--paper");
    bench->has_peers = !args_has(args, "--no-fourier");
    choose_variants(bench, args);
    /* The cases that --workload and --case select. */
    const int only = args_word(args, "--workload", NULL, -1);
    bool has_any = false;
    bench->name = args_text(args, "--case");
    if (bench->name != NULL && bench->is_paper)
        args_complain(args, "--paper needs all cases of a workload: leave --case out");
    for (int w = 0; w < 4; w++) bench->chosen[w] = only < 0 ? w < 3 || bench->is_paper : w == only;
    for (int k = 0; k < DIRECT_NUM_CASES; k++) has_any = has_any || is_chosen(bench, &cases[k]);
    if (!has_any) {
        args_complain(args,
                      "--case %s: no name of a case has this in it; loraster bench direct "
                      "prints them, such as \"variant 2\"",
                      bench->name);
    }

    bench->device = (int)args_int(args, "--device", 0, args_from_0);
    bench->threads = (int)args_int(args, "--threads", 0, args_from_1);
    bench->repeat = (int)args_int(args, "--repeat", 11, repeats);
    bench->seconds = args_number(args, "--seconds", 10, true);
    lr_status status = args->status == LR_OK ? measure_chosen(bench) : args->status;
    if (status == LR_OK) status = bench_write(args, write_figures, bench);
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--workload", "NAME", "clinical, caches, large or figure4; default the first three", CLI_WORDS_OF(workload_names)},
    {"--case", "TEXT", "only cases that have this in their names, such as \"variant 2\"", NULL},
    {"--paper", NULL, "also figure 4 and what else the papers' tables have, for tools/bench_table.py", NULL},
    {"--no-fourier", NULL, "no Fourier transforms beside the cases", NULL},
    {"--backend", "NAME", "cpu, compute, cuda, or all of them; default auto",
     CLI_WORDS("auto", "cpu", "compute", "cuda", "all")},
    {"--storage", "NAME",
     "compute and cuda: images in buffers, textures, or both, one after the other; default buffers, both with "
     "--backend all",
     CLI_WORDS("buffers", "textures", "both")},
    {"--variant", "NAME",
     "cuda: bands, columns (from buffers), threads, instructions, shared-memory or texture-cache (from buffers or "
     "textures); default all that the storage can have",
     CLI_WORDS_OF(direct_variant_names)},
    {"--repeat", "N", "runs that the median is of; default 11", NULL},
    {"--seconds", "S", "for one figure: fewer runs and views where they take longer; default 10", NULL},
    {COMMON_DEVICE_OPTION},
    {"--threads", "N", "default 0: all processors", NULL},
    {BENCH_OUTPUT_OPTION},
    {0},
};

const struct cli_verb verb_bench_direct = {
    .name = "bench direct",
    .summary = VERB_BENCH_DIRECT,
    .example = "loraster bench direct --workload clinical --backend compute",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what and how", options}},
    .run = run,
};
