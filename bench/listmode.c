/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench listmode: measures iterations over random lines in the cases of the family's paper, and prints the paper's
 * figures beside the measured times.
 *
 * The cases are tables I to V of the paper (milliseconds for forward projection, back projection and update), its
 * figures 3, 5 and 6, larger numbers of lines, and the image of a public data set. */
#include "bench.h"
#include "cli/direct.h"
#include "cli/verbs.h"
#include "energy.h"

#include <lr/listmode.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

enum {
    LISTMODE_NUM_KERNELS = 3,
    LISTMODE_NUM_BACKENDS = 4,
    LISTMODE_NUM_TABLES = 11,
    LISTMODE_FIRST_DEFAULT = 1, /* first default table; the defaults are the tables of the paper */
    LISTMODE_LAST_DEFAULT = 4,
    LISTMODE_MOST_OUTCOMES = 512,
    LISTMODE_MOST_REPEATS = 101
};

/* One row of a table. */
struct listmode_case {
    const char *table; /* name of the table in --table */
    int size[3];
    int width;          /* width of the tube, in voxels */
    int millions;       /* number of lines, in millions */
    const char *preset; /* preset of the scanner; NULL = the ring for random lines */
    double voxel_mm;    /* 0 = the image is 576 mm across */
    int subsets;        /* subsets of an iteration; 0 counts as 1 */
    int iterations;     /* iterations of the reconstruction; 0 = not stated */
    bool has_ladder;    /* also measured with each step of the paper */
    bool has_fastmath;  /* also measured with fast math, and with the step before fast math */
    bool has_blocks;    /* also measured with blocks of several sizes */
    bool has_collisions;
};

/* Settings for one line of the output. */
struct listmode_way {
    const struct listmode_case *what;
    lr_listmode_kernel kernel;
    bool has_tof;
    const char *backend; /* NULL = auto */
    lr_listmode_variant variant;
    int threads, blocks; /* cuda: threads per block, and blocks per multiprocessor; 0 = the backend's default */
};

/* Time by the wall clock, and by the device's own clock (0 = the device has none). */
struct listmode_seconds {
    double wall, device;
};

struct listmode_outcome {
    struct listmode_way way;
    char backend[32], device[160];
    int64_t lines;
    double prepare_s; /* time to make an operator from events, including partitioning and sorting */
    double partition_s, sort_s;
    struct listmode_seconds forward, back, iteration; /* iteration: both projections, ratio and update */
    double visits;                                    /* number of voxels per line */
    double joules;                                    /* energy of an iteration; 0 = not known */
    char energy_source[8];
    struct listmode_collisions {
        double share; /* fraction of writes to a voxel to which another line of the same warp also writes */
        int most;     /* most lines of a warp in one voxel; 0 = not counted */
        int *slice;   /* [y][x], most collisions of a warp in each voxel of the middle slice, owned by the bench; NULL =
                         not counted */
    } collisions;
    float *image; /* image of an iteration, owned by the bench; NULL for cases without fast math */
    /* RMS difference between the images of fast math and of the step before, divided by the range of the second image;
     * NaN = not compared */
    double deviation;
};

struct listmode_bench {
    struct report *report;
    bool tables[LISTMODE_NUM_TABLES], kernels[LISTMODE_NUM_KERNELS];
    bool is_exact_alone; /* the user asked for the exact kernel by name */
    bool is_all;         /* all backends are measured, one after the other */
    const char *backend; /* the only backend if is_all is false; NULL = auto */
    bool with_tof, without_tof;
    int64_t lines;     /* number of lines used for each million of the paper */
    int64_t all_lines; /* number of lines in all cases; 0 = the number that the case gives */
    int subsets;       /* subsets of an iteration; 0 = the number that the case gives */
    lr_listmode_variant variant;
    double tof_ps;
    int64_t max_memory_bytes;
    int device, threads, repeat;
    double seconds;
    uint64_t seed;
    const char *preset; /* preset of the current scanner; NULL = the ring */
    lr_scanner *scanner;
    lr_lors *lors;
    struct listmode_outcome outcomes[LISTMODE_MOST_OUTCOMES];
    int num_outcomes;
};

static const char *const listmode_kernels[LISTMODE_NUM_KERNELS + 1] = {"tube", "line", "exact", NULL};
static const char *const listmode_tables[LISTMODE_NUM_TABLES + 1] = {"first",    "lines",  "widths",     "voxels",
                                                                     "both",     "linear", "ladder",     "public",
                                                                     "fastmath", "blocks", "collisions", NULL};

#define WHOLE_BODY                                                                                                     \
    {                                                                                                                  \
        75, 75, 26                                                                                                     \
    }
#define CUBE(n)                                                                                                        \
    {                                                                                                                  \
        n, n, n                                                                                                        \
    }

static const struct listmode_case listmode_cases[] = {
    {"first", WHOLE_BODY, 3, .millions = 1},
    /* table I: 15 blocks of 1024 threads */
    {"lines", WHOLE_BODY, 3, .millions = 1},
    {"lines", WHOLE_BODY, 3, .millions = 2},
    {"lines", WHOLE_BODY, 3, .millions = 5},
    {"lines", WHOLE_BODY, 3, .millions = 10},
    /* table V */
    {"widths", WHOLE_BODY, 1, .millions = 1},
    {"widths", WHOLE_BODY, 3, .millions = 1},
    {"widths", WHOLE_BODY, 5, .millions = 1},
    {"widths", WHOLE_BODY, 7, .millions = 1},
    {"widths", WHOLE_BODY, 9, .millions = 1},
    {"widths", WHOLE_BODY, 11, .millions = 1},
    {"widths", WHOLE_BODY, 13, .millions = 1},
    {"widths", WHOLE_BODY, 15, .millions = 1},
    /* table IV */
    {"voxels", CUBE(32), 3, .millions = 1},
    {"voxels", CUBE(48), 3, .millions = 1},
    {"voxels", CUBE(64), 3, .millions = 1},
    {"voxels", CUBE(128), 3, .millions = 1},
    {"voxels", CUBE(256), 3, .millions = 1},
    /* table III */
    {"both", CUBE(32), 1, .millions = 1},
    {"both", CUBE(48), 2, .millions = 1},
    {"both", CUBE(64), 3, .millions = 1},
    {"both", CUBE(128), 6, .millions = 1},
    {"both", CUBE(192), 9, .millions = 1},
    {"both", CUBE(256), 12, .millions = 1},
    /* more lines than in the paper; the time should be a linear function of their number */
    {"linear", WHOLE_BODY, 3, .millions = 1},
    {"linear", WHOLE_BODY, 3, .millions = 10},
    {"linear", WHOLE_BODY, 3, .millions = 100},
    /* figure 5: each step together with the steps before it */
    {"ladder", WHOLE_BODY, 3, 1, .has_ladder = true},
    /* image, subsets and iterations of the public NEMA data set (Zenodo 8404015) */
    {"public", {215, 215, 71}, 3, 10, .preset = "ge-discovery-mi", .voxel_mm = 2.78, .subsets = 34, .iterations = 2},
    /* table II, with time of flight: the step before fast math, and fast math, the last step */
    {"fastmath", WHOLE_BODY, 3, 1, .has_fastmath = true},
    {"fastmath", WHOLE_BODY, 5, 1, .has_fastmath = true},
    {"fastmath", WHOLE_BODY, 7, 1, .has_fastmath = true},
    /* figure 6 */
    {"blocks", WHOLE_BODY, 3, 1, .has_blocks = true},
    /* figure 3 */
    {"collisions", WHOLE_BODY, 3, 1, .has_collisions = true},
    {0},
};

/* Number of subsets in an iteration. */
static int listmode_subsets(const struct listmode_bench *bench, const struct listmode_case *what)
{
    const int own = what->subsets > 0 ? what->subsets : 1;
    return bench->subsets > 0 ? bench->subsets : own;
}

/* Seconds for computing rates: by the device's clock if there is one. */
static double listmode_best(const struct listmode_seconds *seconds)
{
    return seconds->device > 0 ? seconds->device : seconds->wall;
}

/* --- lines --- */

static const double across_mm = 576;

/* A grid that is 576 mm wide, like the field of view of the Gemini TF, unless the case gives a voxel size. Cubes are
 * also 576 mm long. */
static lr_grid listmode_grid(const struct listmode_case *what)
{
    lr_grid grid = {0};
    for (int k = 0; k < 3; k++) {
        grid.size[k] = what->size[k];
        grid.voxel_mm[k] = what->voxel_mm > 0 ? what->voxel_mm : across_mm / what->size[0];
        grid.origin_mm[k] = -0.5 * grid.voxel_mm[k] * (what->size[k] - 1);
    }
    return grid;
}

/* --- events --- */

/* Draws an event. Returns false if its LOR is not in coincidence or misses the image. */
static bool draw_event(const struct listmode_bench *bench, const lr_grid *grid, int64_t draw, lr_event *event)
{
    const int64_t number = (int64_t)(common_random(bench->seed, 2 * draw) * (double)bench->lors->count);
    double begin_mm[3], end_mm[3], square = 0;
    *event = (lr_event){.weight = 1};
    lr_lors_crystals(bench->lors, number, event->crystals);
    lr_scanner_hit_centre(bench->scanner, event->crystals[0], begin_mm);
    lr_scanner_hit_centre(bench->scanner, event->crystals[1], end_mm);

    /* The points of a line are begin + t (end - begin). The points with from <= t <= to are within the image's box. */
    double from = 0, to = 1;
    for (int k = 0; k < 3; k++) {
        const double half_mm = 0.5 * grid->voxel_mm[k] * grid->size[k];
        const double way_mm = end_mm[k] - begin_mm[k];
        const double one = (-half_mm - begin_mm[k]) / way_mm;
        const double other = (half_mm - begin_mm[k]) / way_mm;
        square += way_mm * way_mm;
        if (way_mm != 0) {
            from = fmax(from, fmin(one, other));
            to = fmin(to, fmax(one, other));
        } else if (fabs(begin_mm[k]) > half_mm) {
            to = from;
        }
    }
    const double t = from + common_random(bench->seed, 2 * draw + 1) * (to - from);
    event->tof_mm = (float)((t - 0.5) * sqrt(square));
    return from < to && lr_lors_in_coincidence(bench->lors, number);
}

/* Lines are drawn in parts. Each part has its own random numbers, so the result does not depend on the number of
 * threads. */
enum { PART_LINES = 1 << 20, MOST_THREADS = 64 };
#define PART_DRAWS (INT64_C(1) << 32)

struct drawing {
    const struct listmode_bench *bench;
    const lr_grid *grid;
    lr_event *events;
    int64_t count;
    atomic_llong next; /* index of the next part */
};

static int draw_parts(void *user)
{
    struct drawing *drawing = user;
    for (int64_t part = atomic_fetch_add(&drawing->next, 1); part * PART_LINES < drawing->count;
         part = atomic_fetch_add(&drawing->next, 1)) {
        const int64_t begin = part * PART_LINES, left = drawing->count - begin;
        const int64_t end = begin + (left < PART_LINES ? left : PART_LINES);
        int64_t at = begin;
        for (int64_t draw = part * PART_DRAWS; at < end; draw++)
            at += draw_event(drawing->bench, drawing->grid, draw, &drawing->events[at]);
    }

    return 0;
}

/* --- measuring --- */

/* Time for warm-up runs: at most warm_s, and at most the fraction warm_share of the time for a figure. A card that has
 * waited for the host takes about 0.1 s to reach its full clock rate. At first, a card was five times as slow. */
static const double warm_s = 0.5, warm_share = 0.25;

/* Approximate time of the runs between two readings of the clock. */
static const double row_s = 0.1;

enum {
    COUNTED_LINES = 1000,     /* most lines whose voxels are counted */
    COUNTED_LEAST = 30,       /* least number of these lines, also for large images; counting a line takes longer in a
                                 larger image */
    COUNTED_VOXELS = 1 << 20, /* size of an image above which fewer lines are counted */
    COUNTED_EXACT_LINES = 50, /* lines counted for exact elements, which take longer */
    MOST_IN_A_ROW = 32,       /* most runs between two readings of the clock */
    ENERGY_SECONDS = 2        /* least time of iterations between two readings of an energy counter */
};

/* --- the operator --- */

static lr_operator *make_operator(const struct listmode_bench *bench, const struct listmode_way *way,
                                  const lr_event *events, int64_t count)
{
    const lr_grid grid = listmode_grid(way->what);
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = way->what->preset != NULL ? 0 : bench->tof_ps};
    return lr_listmode_create(&(lr_listmode_params){
        .lors = bench->lors,
        .grid = &grid,
        .events = events,
        .count = count,
        .info = way->has_tof ? &info : NULL,
        .kernel = way->kernel,
        .tube = {.width_mm = way->what->width * grid.voxel_mm[0], .fwhm_mm = 0.5 * way->what->width * grid.voxel_mm[0]},
        .backend = way->backend,
        .threads = bench->threads,
        .device = bench->device,
        .variant = way->variant,
        .block_threads = way->threads,
        .blocks_each = way->blocks,
        .num_ranges = listmode_subsets(bench, way->what),
        .max_memory_bytes = bench->max_memory_bytes,
        .log = &bench->report->log,
        .progress = &bench->report->progress});
}

/* Makes an operator of the first `count` events. errors: NULL, logged. */
static lr_operator *make_native(const struct listmode_bench *bench, const struct listmode_way *way,
                                const lr_event *events, int64_t count)
{
    struct listmode_way native = *way;
    native.backend = "native";
    native.variant = LR_LISTMODE_FASTEST;
    return make_operator(bench, &native, events, count);
}

static lr_status add_elements(void *user, const lr_row *row)
{
    double *elements = user;
    *elements += (double)row->count;
    return LR_OK;
}

/* --- collisions within a warp --- */

/* WARP: number of lines that a warp handles at once. COUNTED_WARPS: number of warps that are examined. */
enum { WARP = 32, COUNTED_WARPS = 64 };

struct counting {
    int *lines; /* [voxels], lines of the current warp in each voxel */
    int *slice; /* [slice_size], most collisions of a warp in the voxels from first_voxel on */
    int64_t first_voxel, slice_size;
    int64_t *voxels; /* [room], voxels with at least one line */
    int64_t num_voxels;
    int64_t rows;
    double writes, collisions;
    int most;
};

static void end_warp(struct counting *counting)
{
    for (int64_t k = 0; k < counting->num_voxels; k++) {
        const int64_t at = counting->voxels[k] - counting->first_voxel;
        int *lines = &counting->lines[counting->voxels[k]];
        if (at >= 0 && at < counting->slice_size && counting->slice[at] < *lines - 1) counting->slice[at] = *lines - 1;
        counting->writes += *lines;
        counting->collisions += *lines - 1;
        counting->most = *lines > counting->most ? *lines : counting->most;
        *lines = 0;
    }
    counting->num_voxels = 0;
}

static lr_status take_line(void *user, const lr_row *row)
{
    struct counting *counting = user;
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t voxel = row->lor[k];
        if (counting->lines[voxel]++ == 0) counting->voxels[counting->num_voxels++] = voxel;
    }
    counting->rows++;
    if (counting->rows % WARP == 0) end_warp(counting);
    return LR_OK;
}

/* Counts collisions with the kernel of the outcome, for events in the order in which they were drawn. Backend native
 * computes the rows of the events. */
static lr_status count_collisions(const struct listmode_bench *bench, const lr_event *events,
                                  struct listmode_outcome *outcome)
{
    const int *size = outcome->way.what->size;
    const int64_t voxels = (int64_t)size[0] * size[1] * size[2], most = WARP * COUNTED_WARPS;
    const int64_t count = outcome->lines < most ? outcome->lines : most;
    const int64_t in_slice = (int64_t)size[0] * size[1];
    struct counting counting = {.lines = calloc((size_t)voxels, sizeof(*counting.lines)),
                                .slice = calloc((size_t)in_slice, sizeof(*counting.slice)),
                                .first_voxel = size[2] / 2 * in_slice,
                                .slice_size = in_slice,
                                .voxels = calloc((size_t)voxels, sizeof(*counting.voxels))};
    const lr_row_sink sink = {.take = take_line, .user = &counting};
    lr_operator *op = make_native(bench, &outcome->way, events, count);
    lr_status status = op != NULL ? LR_OK : report_reason(bench->report);
    if (status == LR_OK && (counting.lines == NULL || counting.slice == NULL || counting.voxels == NULL))
        status = report_error(bench->report, LR_FAILED, "no memory for counts of voxels");
    if (status == LR_OK) status = lr_operator_lor_rows(op, NULL, &sink);
    if (status == LR_OK) end_warp(&counting);
    outcome->collisions.share = counting.writes > 0 ? counting.collisions / counting.writes : 0.0;
    outcome->collisions.most = counting.most;
    outcome->collisions.slice = counting.slice;
    lr_operator_destroy(op);
    free(counting.lines);
    free(counting.voxels);
    return status;
}

struct running {
    lr_operator *op;
    int subsets;
    lr_vector image, correction, sensitivity; /* images */
    lr_vector ones, values;                   /* values of events */
};

typedef lr_status work_fn(struct running *running);

static lr_status project(struct running *running)
{
    return lr_operator_forward(running->op, NULL, &running->image, &running->values);
}

static lr_status back_project(struct running *running)
{
    return lr_operator_back(running->op, NULL, &running->ones, &running->correction);
}

/* Makes the same updates as lr_recon. The sensitivity is computed from these events only. */
static lr_status iterate(struct running *running)
{
    const lr_lors *layout = lr_operator_get_info(running->op)->lors;
    for (int32_t subset = 0; subset < running->subsets; subset++) {
        const int64_t begin = layout->offsets[subset], count = layout->offsets[subset + 1] - begin;
        const lr_selection one = {.pairs = &subset, .num_pairs = 1};
        const lr_selection *part = running->subsets > 1 ? &one : NULL;
        const lr_vector ones = lr_vector_part(&running->ones, begin, count);
        lr_vector values = lr_vector_part(&running->values, begin, count);
        CLI_TRY(lr_operator_forward(running->op, part, &running->image, &values));
        CLI_TRY(lr_vector_divide_counts(&(lr_poisson_ratio){.measured = &ones, .values = &values}, NULL));
        CLI_TRY(lr_operator_back(running->op, part, &values, &running->correction));
        CLI_TRY(lr_vector_update_em(&(lr_em_update){.x = &running->image,
                                                    .correction = &running->correction,
                                                    .sensitivity = &running->sensitivity,
                                                    .next = &running->image}));
    }
    return LR_OK;
}

/* Waits for the device: sums can be read only when the arrays have been computed. */
static lr_status finish(struct running *running)
{
    lr_vector_sums sums;
    CLI_TRY(lr_vector_add_up(&running->image, NULL, &sums));
    return lr_vector_add_up(&running->values, NULL, &sums);
}

static lr_status time_once(struct running *running, work_fn *work, int times, struct listmode_seconds *seconds)
{
    CLI_TRY(finish(running));
    const double start = report_seconds();
    for (int k = 0; k < times; k++) CLI_TRY(work(running));
    seconds->device = work == iterate ? 0 : lr_operator_device_seconds(running->op);
    if (work == iterate) {
        lr_vector_sums sums;
        CLI_TRY(lr_vector_add_up(&running->image, NULL, &sums));
    }
    seconds->wall = (report_seconds() - start) / times;
    return LR_OK;
}

static int compare_seconds(const void *a, const void *b)
{
    const double l = listmode_best(a), r = listmode_best(b);
    return (l > r) - (l < r);
}

/* Measures the median of as many readings of the clock as there is time for. The first run counts only if it took all
 * the time. The device's clock measures only the last run of each reading. */
static lr_status time_work(const struct listmode_bench *bench, struct running *running, work_fn *work,
                           struct listmode_seconds *median)
{
    struct listmode_seconds all[LISTMODE_MOST_REPEATS];
    int runs = 0;
    CLI_TRY(time_once(running, work, 1, median)); /* the first run includes the building of programs */
    /* Runs until the device has reached its full speed. */
    const double warm_start = report_seconds(), enough_s = fmin(warm_s, warm_share * bench->seconds);
    while (report_seconds() - warm_start + median->wall < enough_s) CLI_TRY(time_once(running, work, 1, median));
    const double each_s = median->wall > 0 ? median->wall : 1e-9, limit_s = bench->seconds;
    /* Number of runs between two readings. There are several short runs, so that the device does not wait for the
     * host. */
    const double fit = fmin(bench->seconds / bench->repeat, row_s) / each_s;
    const int times = fit < 1 ? 1 : fit < MOST_IN_A_ROW ? (int)fit : MOST_IN_A_ROW;

    const double start = report_seconds();
    while (runs < bench->repeat && report_seconds() - start < limit_s - each_s)
        CLI_TRY(time_once(running, work, times, &all[runs++]));
    if (runs > 0) {
        qsort(all, (size_t)runs, sizeof(all[0]), compare_seconds);
        *median = all[runs / 2];
    }
    return LR_OK;
}

/* --- energy --- */

static lr_status read_energy(struct running *running, struct energy_meter *meter, struct listmode_outcome *outcome)
{
    const double times = fmax(1.0, ceil(ENERGY_SECONDS / fmax(outcome->iteration.wall, 1e-6)));
    double before, after;
    CLI_TRY(finish(running));
    const bool is_told = energy_read(meter, &before);
    for (double k = 0; is_told && k < times; k++) CLI_TRY(iterate(running));
    CLI_TRY(finish(running));
    if (is_told && energy_read(meter, &after) && after > before) {
        outcome->joules = (after - before) / times;
        snprintf(outcome->energy_source, sizeof(outcome->energy_source), "%s", energy_source(meter));
    }
    return LR_OK;
}

static lr_status measure_all(const struct listmode_bench *bench, struct running *running,
                             struct listmode_outcome *outcome)
{
    const lr_operator_info *info = lr_operator_get_info(running->op);
    lr_vector *const vectors[] = {&running->image, &running->correction, &running->sensitivity, &running->ones,
                                  &running->values};
    for (int k = 0; k < 5; k++) {
        const lr_vector_params params = {.place = lr_operator_place(running->op),
                                         .count = k < 3 ? info->num_voxels : info->num_lors,
                                         .log = &bench->report->log};
        CLI_TRY(lr_vector_create(&params, vectors[k]));
    }
    CLI_TRY(lr_vector_fill(&running->image, 1));
    CLI_TRY(lr_vector_fill(&running->ones, 1));
    CLI_TRY(back_project(running));
    CLI_TRY(lr_vector_copy(&running->correction, &running->sensitivity));

    if (outcome->way.what->has_fastmath) { /* keeps the image of one iteration */
        const int64_t count = running->image.count;
        outcome->image = malloc((size_t)count * sizeof(*outcome->image));
        if (outcome->image == NULL) return report_error(bench->report, LR_FAILED, "no memory for an image");
        lr_vector host = lr_vector_of_floats(outcome->image, count);
        CLI_TRY(iterate(running));
        CLI_TRY(lr_vector_copy(&running->image, &host));
    }
    CLI_TRY(time_work(bench, running, project, &outcome->forward));
    CLI_TRY(time_work(bench, running, back_project, &outcome->back));
    CLI_TRY(time_work(bench, running, iterate, &outcome->iteration));
    /* The energy is that of whole cards or processors, and includes other work that they do at the time. */
    struct energy_meter *meter = energy_open(&(struct energy_params){
        .is_gpu = lr_operator_get_info(running->op)->is_gpu, .device = outcome->device, .number = bench->device});
    const lr_status status = meter != NULL ? read_energy(running, meter, outcome) : LR_OK;
    energy_close(meter);
    return status;
}

static lr_status measure_events(const struct listmode_bench *bench, const lr_event *events,
                                struct listmode_outcome *outcome)
{
    const double start = report_seconds();
    struct running running = {.op = make_operator(bench, &outcome->way, events, outcome->lines),
                              .subsets = listmode_subsets(bench, outcome->way.what)};
    if (running.op == NULL) return report_reason(bench->report);
    const lr_operator_info *info = lr_operator_get_info(running.op);
    outcome->prepare_s = report_seconds() - start;
    outcome->partition_s = lr_listmode_get_info(running.op)->partition_seconds;
    outcome->sort_s = lr_listmode_get_info(running.op)->sort_seconds;
    snprintf(outcome->backend, sizeof(outcome->backend), "%s", info->backend);
    snprintf(outcome->device, sizeof(outcome->device), "%s", info->device);
    lr_place *place = lr_operator_place(running.op); /* the vectors' place, held during the measurement as in a
                                                        reconstruction */
    lr_status status = lr_place_hold(place);
    if (status == LR_OK) {
        status = measure_all(bench, &running, outcome);
        lr_place_release(place);
    }
    lr_vector_destroy(&running.image);
    lr_vector_destroy(&running.correction);
    lr_vector_destroy(&running.sensitivity);
    lr_vector_destroy(&running.ones);
    lr_vector_destroy(&running.values);
    lr_operator_destroy(running.op);
    CLI_TRY(status);
    CLI_TRY(outcome->way.what->has_collisions ? count_collisions(bench, events, outcome) : LR_OK);
    /* Computes rows of the first lines by backend native. */
    const lr_grid grid = listmode_grid(outcome->way.what);
    const int64_t fit = (int64_t)COUNTED_LINES * COUNTED_VOXELS / ((int64_t)grid.size[0] * grid.size[1] * grid.size[2]);
    const int64_t usual = outcome->way.kernel == LR_LISTMODE_EXACT ? COUNTED_EXACT_LINES : COUNTED_LINES;
    const int64_t most = fit > usual ? usual : fit < COUNTED_LEAST ? COUNTED_LEAST : fit;
    const int64_t count = outcome->lines < most ? outcome->lines : most;
    double elements = 0;
    lr_operator *op = make_native(bench, &outcome->way, events, count);
    const lr_row_sink sink = {.take = add_elements, .user = &elements};
    const lr_status counted = op != NULL ? lr_operator_lor_rows(op, NULL, &sink) : report_reason(bench->report);
    lr_operator_destroy(op);
    outcome->visits = elements / (double)count;
    return counted;
}

/* Fills in `outcome` for outcome->way. errors: LR_NO_DEVICE; LR_USAGE if the backend is missing or lacks the kernel;
 * LR_CANCELLED. */
static lr_status listmode_measure(const struct listmode_bench *bench, struct listmode_outcome *outcome)
{
    const lr_grid grid = listmode_grid(outcome->way.what);
    outcome->lines = bench->all_lines > 0 ? bench->all_lines : bench->lines * outcome->way.what->millions;
    lr_event *events = malloc((size_t)outcome->lines * sizeof(*events));
    if (events == NULL)
        return report_error(bench->report, LR_FAILED, "no memory for %lld events", (long long)outcome->lines);
    /* LORs are uniform among LORs in coincidence that cross the image. Times of flight are uniform along the part of
     * the line within the image. */
    struct drawing drawing = {.bench = bench, .grid = &grid, .events = events, .count = outcome->lines};
    const long processors = bench->threads > 0 ? bench->threads : sysconf(_SC_NPROCESSORS_ONLN);
    thrd_t threads[MOST_THREADS];
    int started = 0;
    while (started + 1 < processors && started < MOST_THREADS && (started + 1) * (int64_t)PART_LINES < outcome->lines &&
           thrd_create(&threads[started], draw_parts, &drawing) == thrd_success)
        started++;
    (void)draw_parts(&drawing);
    for (int k = 0; k < started; k++) thrd_join(threads[k], NULL);

    const lr_status status = measure_events(bench, events, outcome);
    free(events);
    return status;
}

/* "all" stands for all other entries. */
static const char *const backends[] = {"cpu", "native", "compute", "cuda", "all", NULL};

/* Compares the image of fast math with the image of the step before, if both were measured: root mean square of the
 * difference divided by the range of values. */
static void find_deviation(const struct listmode_bench *bench, struct listmode_outcome *fast)
{
    const struct listmode_case *what = fast->way.what;
    const float *plain = NULL;
    for (int k = 0; fast->way.variant == LR_LISTMODE_FASTMATH && plain == NULL && k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (outcome->way.what == what && outcome->way.variant == LR_LISTMODE_SORTED) plain = outcome->image;
    }
    if (plain == NULL || fast->image == NULL) return;
    const int64_t count = (int64_t)what->size[0] * what->size[1] * what->size[2];
    double square = 0, least = INFINITY, most = -INFINITY;
    for (int64_t k = 0; k < count; k++) {
        const double difference = (double)plain[k] - (double)fast->image[k];
        square += difference * difference;
        least = fmin(least, plain[k]);
        most = fmax(most, plain[k]);
    }
    fast->deviation = most > least ? sqrt(square / (double)count) / (most - least) : 0.0;
}

/* If there are several backends, a backend that is missing or lacks the kernel is left out. */
static lr_status measure(struct listmode_bench *bench, const struct listmode_way *way)
{
    const char *preset = way->what->preset;
    const lr_log *log = &bench->report->log;
    struct listmode_outcome *outcome = &bench->outcomes[bench->num_outcomes];
    if (bench->num_outcomes == LISTMODE_MOST_OUTCOMES) return LR_OK;
    if (bench->lors == NULL || bench->preset != preset) {
        lr_lors_destroy(bench->lors);
        lr_scanner_destroy(bench->scanner);
        bench->lors = NULL;
        bench->preset = preset;
        if (preset != NULL) {
            bench->scanner = lr_scanner_read(preset, log);
        } else {
            /* The ring is as long as the largest image, so that lines come from all directions. Crystals have 6 mm; 28
             * modules of 16 crystals are around the ring, and 100 crystals along the axis. */
            static const int around[1] = {16}, along[1] = {100};
            const lr_ring ring = {.radius_mm = 450,
                                  .modules = 28,
                                  .block_crystals = {around, along},
                                  .pitch_mm = {6, 6},
                                  .face_mm = {6, 6},
                                  .depth_mm = 20};
            bench->scanner = lr_scanner_create_ring(&(lr_scanner_params){.name = "ring for random lines",
                                                                         .coincidence = {.min_module_difference = 5},
                                                                         .tof_resolution_ps = bench->tof_ps,
                                                                         .log = log},
                                                    &ring);
        }
        if (bench->scanner == NULL) return report_reason(bench->report);
        bench->lors = lr_lors_create(bench->scanner, log);
        if (bench->lors == NULL) return report_reason(bench->report);
    }
    *outcome = (struct listmode_outcome){.way = *way, .deviation = NAN};
    const lr_status status = listmode_measure(bench, outcome);
    if (status != LR_OK) { /* the outcome is not in the list of outcomes whose data are freed at the end */
        free(outcome->image);
        outcome->image = NULL;
    }
    if ((status == LR_NO_DEVICE || status == LR_USAGE) && bench->is_all) {
        report_info(bench->report, "%s is left out", way->backend);
        return LR_OK;
    }
    CLI_TRY(status);
    find_deviation(bench, outcome);
    report_clear(bench->report);
    report_info(bench->report, "%s, %s%s, %s: %.4g ms forward, %.4g ms back, %.4g ms an iteration of %lld lines",
                way->what->table, listmode_kernels[way->kernel], way->has_tof ? ", TOF" : "", outcome->backend,
                1e3 * listmode_best(&outcome->forward), 1e3 * listmode_best(&outcome->back),
                1e3 * outcome->iteration.wall, (long long)outcome->lines);
    bench->num_outcomes++;
    return LR_OK;
}

/* Measures variants of cuda: all steps of the paper; or the step before fast math, and fast math; or several block
 * sizes, and several numbers of blocks per multiprocessor. */
static lr_status measure_variants(struct listmode_bench *bench, struct listmode_way *way)
{
    static const int threads[] = {128, 256, 512, 768}, blocks[] = {1, 2, 4, 8};
    const bool is_ladder = way->what->has_ladder && bench->variant == LR_LISTMODE_FASTEST;
    const bool has_fastmath = way->what->has_fastmath;
    if (!has_fastmath && way->what->has_blocks) {
        lr_status status = LR_OK;
        way->variant = LR_LISTMODE_FASTEST;
        for (int k = 0; status == LR_OK && k < 16; k++) {
            way->threads = threads[k / 4];
            way->blocks = blocks[k % 4];
            status = measure(bench, way);
        }
        way->threads = way->blocks = 0;
        return status;
    }
    for (int variant = has_fastmath ? LR_LISTMODE_SORTED : LR_LISTMODE_SIMPLE;
         (is_ladder || has_fastmath) && variant <= LR_LISTMODE_FASTMATH; variant++) {
        way->variant = (lr_listmode_variant)variant;
        CLI_TRY(measure(bench, way));
    }
    if (has_fastmath) return LR_OK;
    way->variant = bench->variant;
    return measure(bench, way);
}

/* True if the kernel is measured. Exact elements have no width and take long on processors, so by default they are
 * measured only in the first table. */
static bool has_kernel(const struct listmode_bench *bench, int kernel, const struct listmode_case *what)
{
    const bool is_usual =
        kernel != LR_LISTMODE_EXACT || bench->is_exact_alone || strcmp(what->table, listmode_tables[0]) == 0;
    const bool is_tube_alone = what->has_fastmath || what->has_blocks || what->has_collisions;
    /* A tube as narrow as a voxel would miss all centres of some slices, so a thin line is measured instead. */
    if (what->width == 1 && kernel == LR_LISTMODE_TUBE) return false;
    if (what->width == 1 && kernel == LR_LISTMODE_LINE)
        return bench->kernels[kernel] || bench->kernels[LR_LISTMODE_TUBE];
    return bench->kernels[kernel] && is_usual && (kernel == LR_LISTMODE_TUBE || !is_tube_alone);
}

/* --- JSON --- */

/* Fractions of a device's ceilings that the rate of visited voxels reaches. Fills in at most 3 entries and returns
 * their number; 0 if the ceilings are not known. */
static int listmode_ceilings(const struct listmode_outcome *outcome, struct bench_ceiling ceilings[3])
{
    /* Bytes for each event: its crystals, time and number; and its value, which is read and written. */
    const double bytes = 2 * (16 + 4), lines = (double)outcome->lines;
    const double visits = lines * outcome->visits;
    return bench_visit_ceilings(outcome->device,
                                &(struct bench_visits){visits / listmode_best(&outcome->forward),
                                                       visits / listmode_best(&outcome->back),
                                                       lines * bytes / outcome->iteration.wall},
                                ceilings);
}

static void write_seconds(struct json *json, const char *key, const struct listmode_seconds *seconds)
{
    json_open(json, key, '{');
    bench_json_seconds(json, seconds->wall, seconds->device);
    json_close(json, '}');
}

static void write_figures(const void *user, struct json *json)
{
    const struct listmode_bench *bench = user;
    json_number(json, "tof_ps", bench->tof_ps);
    json_open(json, "results", '[');
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        const struct listmode_way *way = &outcome->way;
        const bool is_step = way->variant != LR_LISTMODE_FASTEST;
        struct bench_ceiling ceilings[3];
        json_open(json, NULL, '{');
        json_text(json, "table", way->what->table);
        json_ints(json, "size", way->what->size, 3);
        json_int(json, "width_voxels", way->what->width);
        json_int(json, "lines", outcome->lines);
        json_number(json, "paper_lines", 1e6 * way->what->millions);
        json_text(json, "kernel", listmode_kernels[way->kernel]);
        json_bool(json, "tof", way->has_tof);
        json_text(json, "backend", outcome->backend);
        json_text(json, "device", outcome->device);
        json_text(json, "variant", is_step ? common_listmode_variants[way->variant - LR_LISTMODE_SIMPLE] : NULL);
        json_int(json, "subsets", listmode_subsets(bench, way->what));
        json_int(json, "iterations", way->what->iterations);
        json_number(json, "partition_seconds", outcome->partition_s);
        json_number(json, "sort_seconds", outcome->sort_s);
        json_number(json, "prepare_seconds", outcome->prepare_s);
        write_seconds(json, "forward", &outcome->forward);
        write_seconds(json, "back", &outcome->back);
        write_seconds(json, "iteration", &outcome->iteration);
        json_number(json, "visits_a_line", outcome->visits);
        json_number(json, "voxels_per_s", 2 * outcome->visits * (double)outcome->lines / outcome->iteration.wall);
        bench_json_ceilings(json, ceilings, listmode_ceilings(outcome, ceilings));
        json_number(json, "joules", bench_unless_zero(outcome->joules));
        json_text(json, "energy_source", outcome->joules > 0 ? outcome->energy_source : NULL);
        json_int(json, "block_threads", way->threads);
        json_int(json, "blocks", way->blocks);
        json_number(json, "collisions", outcome->collisions.share);
        json_int(json, "most_collisions", outcome->collisions.most);
        json_ints(json, "collision_slice", outcome->collisions.slice,
                  outcome->collisions.slice != NULL ? way->what->size[0] * way->what->size[1] : 0);
        json_number(json, "image_deviation", outcome->deviation);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* --- the verb --- */

static void choose(struct listmode_bench *bench, struct cli_args *args)
{
    static const int64_t repeats[2] = {1, LISTMODE_MOST_REPEATS};
    const int table = args_word(args, "--table", NULL, -1);
    const int kernel = args_word(args, "--kernel", NULL, -1);
    const int backend = args_word(args, "--backend", NULL, -1);
    bench->report = args->report;
    for (int k = 0; k < LISTMODE_NUM_TABLES; k++)
        bench->tables[k] = table < 0 ? k >= LISTMODE_FIRST_DEFAULT && k <= LISTMODE_LAST_DEFAULT : k == table;
    for (int k = 0; k < LISTMODE_NUM_KERNELS; k++) bench->kernels[k] = kernel < 0 || k == kernel;
    bench->is_exact_alone = kernel == LR_LISTMODE_EXACT;
    bench->is_all = backend == LISTMODE_NUM_BACKENDS;
    bench->backend = backend >= 0 && !bench->is_all ? backends[backend] : NULL;
    bench->without_tof = !args_has(args, "--only-tof");
    bench->with_tof = !args_has(args, "--without-tof");
    bench->variant = (lr_listmode_variant)(args_word(args, "--variant", common_listmode_variants, -1) + 1);
    if (bench->variant != LR_LISTMODE_FASTEST && (bench->backend == NULL || strcmp(bench->backend, "cuda") != 0))
        args_complain(args, "--variant is for --backend cuda");
    if (!bench->with_tof && !bench->without_tof)
        args_complain(args, "--only-tof and --without-tof contradict each other");
    bench->lines = args_int(args, "--events", 1000000, args_from_1);
    bench->all_lines = args_int(args, "--lines", 0, args_from_1);
    bench->subsets = (int)args_int(args, "--subsets", 0, args_from_1);
    bench->max_memory_bytes = args_bytes(args, "--max-memory", 0);
    bench->tof_ps = args_number(args, "--tof-ps", 600, true);
    bench->device = (int)args_int(args, "--device", 0, args_from_0);
    bench->threads = (int)args_int(args, "--threads", 0, args_from_0);
    bench->repeat = (int)args_int(args, "--repeat", 11, repeats);
    bench->seconds = args_number(args, "--seconds", 10, true);
    bench->seed = 1;
}

static lr_status measure_chosen(struct listmode_bench *bench)
{
    for (const struct listmode_case *what = listmode_cases; what->table != NULL; what++) {
        bool is_chosen = false;
        for (int k = 0; k < LISTMODE_NUM_TABLES; k++)
            is_chosen = is_chosen || (bench->tables[k] && strcmp(listmode_tables[k], what->table) == 0);
        const bool is_of_cuda = what->has_ladder || what->has_fastmath || what->has_blocks; /* only for backend cuda */
        struct listmode_way way = {.what = what, .backend = bench->backend};
        for (int k = 0; is_chosen && k < (bench->is_all && !is_of_cuda ? LISTMODE_NUM_BACKENDS : 1); k++) {
            way.backend = bench->is_all ? backends[k] : bench->backend;
            way.backend = is_of_cuda ? "cuda" : way.backend;
            /* Measures every kernel, without and with time of flight. */
            for (int n = 0; n < 2 * LISTMODE_NUM_KERNELS; n++) {
                way.kernel = (lr_listmode_kernel)(n / 2);
                way.has_tof = n % 2 != 0;
                /* The paper's figures for fast math include time of flight. */
                const bool is_meant = way.has_tof ? bench->with_tof : bench->without_tof && !what->has_fastmath;
                if (is_meant && has_kernel(bench, n / 2, what)) CLI_TRY(measure_variants(bench, &way));
            }
        }
    }
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    struct listmode_bench *bench = calloc(1, sizeof(*bench));
    if (bench == NULL) return report_error(args->report, LR_FAILED, "no memory for the figures");
    choose(bench, args);
    lr_status status = args->status == LR_OK ? measure_chosen(bench) : args->status;
    if (status == LR_OK) status = bench_write(args, write_figures, bench);
    for (int k = 0; k < bench->num_outcomes; k++) {
        free(bench->outcomes[k].image);
        free(bench->outcomes[k].collisions.slice);
    }
    lr_lors_destroy(bench->lors);
    lr_scanner_destroy(bench->scanner);
    free(bench);
    return status;
}

static const struct cli_option options[] = {
    {"--table", "NAME",
     "the paper's lines (table I), widths (V), voxels (IV) and both (III), all of which are the default; first (75 "
     "x 75 x 26 voxels, a million lines), linear (to 100 million), ladder (the paper's steps, figure 5), public (10 "
     "million on a Discovery MI, 34 subsets), fastmath (table II), blocks (figure 6), collisions (figure 3)",
     CLI_WORDS_OF(listmode_tables)},
    {"--kernel", "NAME", "tube, line or exact; default all, exact in the first table only",
     CLI_WORDS_OF(listmode_kernels)},
    {"--only-tof", NULL, "nothing without time of flight", NULL},
    {"--without-tof", NULL, "nothing with time of flight", NULL},
    {"--tof-ps", "PS", "time resolution, FWHM; default 600", NULL},
    {"--events", "N", "random lines for each million of the paper's; default 1000000", NULL},
    {"--lines", "N", "random lines of each case, in place of the table's number", NULL},
    {"--subsets", "N", "that an iteration goes through; default by the table", NULL},
    {"--variant", "NAME",
     "how cuda projects, by the paper's steps: simple, coalesced, cached, partitioned, sorted or fastmath; default "
     "its fastest way",
     CLI_WORDS_OF(common_listmode_variants)},
    {"--max-memory", "SIZE", "limit on a device, such as 512M or 16G; default: half", NULL},
    {"--backend", "NAME", "cpu, native, compute, cuda, or all of them; default auto", CLI_WORDS_OF(backends)},
    {"--repeat", "N", "runs that the median is of; default 11", NULL},
    {"--seconds", "S", "for one figure: fewer runs where they take longer; default 10", NULL},
    {COMMON_DEVICE_OPTION},
    {"--threads", "N", "default 0: all processors", NULL},
    {BENCH_OUTPUT_OPTION},
    {0},
};

const struct cli_verb verb_bench_listmode = {
    .name = "bench listmode",
    .summary = VERB_BENCH_LISTMODE,
    .example = "loraster bench listmode --table first --backend native",
    .outputs = {{"-o", common_json_endings}},
    .groups = {{"what and how", options}},
    .run = run,
};
