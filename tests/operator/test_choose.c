/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which backend and mode are taken, whether a matrix is kept, over backends that take as long as they
 * are told, and what is remembered of it. The clock is the test's own: what else the machine does takes
 * no time on it. */
#define _XOPEN_SOURCE 700 /* mkdtemp, setenv */
#include "fixtures.h"

#include "base/clock.h"

#include "base/log.h"
#include "fake_backend.h"
#include "operator/choose.h"
#include <lr/forecast.h>

#include <sys/stat.h>
#include <unistd.h>

/* What a racer is, and what it was asked. */
struct racer {
    double point_us; /* for one voxel, forward or back */
    double row_us;   /* for a row; 0 = point_us */
    const char *device;
    lr_status answer; /* of its constructor */
    int projections, rows, creations;
    lr_mode mode;
    int64_t points; /* of all projections */
    bool is_gpu, is_emulated;
};

static struct racer racers[3];

struct runner {
    struct racer *racer;
    struct lr_backend_params params;
};

static double clock_s, waited_s; /* the latter by a share of each projection */
static double waited_share;

double __wrap_lr_clock_seconds(void);
double __wrap_lr_clock_waited_seconds(void);

double __wrap_lr_clock_waited_seconds(void)
{
    return waited_s;
}

double __wrap_lr_clock_seconds(void)
{
    return clock_s;
}

static void spend(double us)
{
    clock_s += 1e-6 * us;
    waited_s += 1e-6 * us * waited_share;
}

static lr_status run(struct runner *runner, lr_vector *out)
{
    const int64_t num_voxels = lr_grid_num_voxels(runner->params.grid);
    runner->racer->projections++;
    runner->racer->points += num_voxels;
    for (int64_t v = 0; v < num_voxels; v++) {
        LR_TRY(lr_progress_report(runner->params.progress, "running", (double)v, (double)num_voxels));
        spend(runner->racer->point_us);
    }
    return lr_vector_fill(out, 0.0);
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    (void)part, (void)image;
    return run(self, values);
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    (void)part, (void)values;
    return run(self, image);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct runner *runner = self;
    for (int64_t row = wanted->begin; row < wanted->end; row++) {
        const int64_t lor = 0;
        const double value = 1.0;
        runner->racer->rows++;
        spend(runner->racer->row_us > 0 ? runner->racer->row_us : runner->racer->point_us);
        LR_TRY(sink->take(sink->user, &(lr_row){.row = row, .count = 1, .lor = &lor, .probability = &value}));
    }
    return LR_OK;
}

static lr_status create(int which, const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns[3] = {
        {.name = "first", .forward = forward, .back = back, .rows = rows, .destroy = free},
        {.name = "second", .forward = forward, .back = back, .rows = rows, .destroy = free},
        {.name = "rows", .projects_by_rows = true, .forward = forward, .back = back, .rows = rows, .destroy = free}};
    struct racer *racer = &racers[which];
    racer->creations++;
    backend->is_gpu = racer->is_gpu;
    if (racer->answer != LR_OK) return lr_error(params->log, racer->answer, "%s stays at home", fns[which].name);
    lr_warn(params->log, "%s is here", fns[which].name);
    struct runner *runner = calloc(1, sizeof(*runner));
    assert_non_null(runner);
    *runner = (struct runner){racer, *params};
    racer->mode = params->mode;
    backend->fns = &fns[which];
    backend->self = runner;
    backend->is_emulated = racer->is_emulated;
    snprintf(backend->device, sizeof(backend->device), "%s", racer->device);
    return LR_OK;
}

static lr_status create_first(const struct lr_backend_params *params, struct lr_backend *backend)
{
    return create(0, params, backend);
}

static lr_status create_second(const struct lr_backend_params *params, struct lr_backend *backend)
{
    return create(1, params, backend);
}

static lr_status create_rows(const struct lr_backend_params *params, struct lr_backend *backend)
{
    return create(2, params, backend);
}

static const struct lr_backend_choice choices[] = {
    {.name = "first", .has_exact = true, .has_penetration = true, .create = create_first},
    {.name = "second", .create = create_second},
    {.name = "rows", .has_exact = true, .create = create_rows},
};

struct world {
    struct fixture fixture;
    struct test_log log;
    lr_operator_params params;
    lr_grid large; /* for which a trial takes as many points as it likes */
    char folder[64], file[128];
};

static void world_init(struct world *world)
{
    *world = (struct world){.folder = "choose_XXXXXX"};
    fixture_init(&world->fixture, FIXTURE_OPPOSED);
    test_log_init(&world->log);
    world->params = fixture_params(&world->fixture, "auto", &world->log.log);
    world->large = *world->params.grid;
    for (int k = 0; k < 3; k++) {
        const double before = world->large.voxel_mm[k];
        world->large.size[k] = 16;
        world->large.voxel_mm[k] *= world->params.grid->size[k] / 16.0;
        world->large.origin_mm[k] += 0.5 * (world->large.voxel_mm[k] - before);
    }
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->file, sizeof(world->file), "%s/speeds.txt", world->folder);
    assert_int_equal(setenv("LORASTER_CACHE", world->folder, 1), 0);
}

static void world_finish(struct world *world)
{
    remove(world->file);
    assert_int_equal(rmdir(world->folder), 0);
    fixture_finish(&world->fixture);
}

/* Speeds of the three, and counts at zero. */
static void line_up(double first_us, double second_us, double rows_us)
{
    racers[0] = (struct racer){.point_us = first_us, .device = "lane 1"};
    racers[1] = (struct racer){.point_us = second_us, .device = "lane 2"};
    racers[2] = (struct racer){.point_us = rows_us, .device = "lane 3"};
}

static void expect_of(struct world *world, const struct lr_choices *among, const char *backend)
{
    world->log.error[0] = '\0';
    world->log.num_warnings = 0;
    lr_operator *op = lr_operator_create_among(&world->params, among->list, among->count);
    assert_non_null(op);
    assert_string_equal(lr_operator_get_info(op)->backend, backend);
    assert_string_equal(world->log.error, "");
    assert_int_equal(lr_operator_get_info(op)->mode, racers[strcmp(backend, "first") == 0    ? 0
                                                            : strcmp(backend, "second") == 0 ? 1
                                                                                             : 2]
                                                         .mode);
    lr_operator_destroy(op);
}

/* Which of the first `count` choices is taken. */
static void expect(struct world *world, int count, const char *backend)
{
    expect_of(world, &(struct lr_choices){choices, count}, backend);
}

static int num_timed(void)
{
    return racers[0].projections + racers[1].projections + racers[2].projections + racers[0].rows + racers[1].rows +
           racers[2].rows;
}

/* The first of those on graphics processors or vector units, however quick the others are. */
static void test_the_first_is_taken(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        w.params.deterministic = deterministic;
        line_up(400, 20, 100);
        expect(&w, 3, "first");
        racers[0].answer = LR_NO_DEVICE;
        expect(&w, 3, "second");
        racers[0].answer = LR_OK;
        racers[0].is_emulated = true;
        expect(&w, 3, "second");
        racers[1].is_emulated = true;
        expect(&w, 3, "rows");
        racers[2].answer = LR_USAGE;
        expect(&w, 3, "first");
        assert_int_equal(num_timed(), 0);
    }
    assert_int_not_equal(access(w.file, F_OK), 0);
    world_finish(&w);
}

/* What a trial of backend "first" is asked, which says whether its matrix pays; 0: it is known. */
static int trial_over(struct world *world, const lr_grid *grid)
{
    world->params.grid = grid;
    world->params.backend = "first";
    world->params.store = LR_STORE_AUTO;
    world->params.projections = 1e6;
    line_up(400, 20, 100);
    racers[0].row_us = 1e9; /* which it does not */
    world->log.num_warnings = 0;
    lr_operator *op = lr_operator_create_among(&world->params, choices, 3);
    assert_non_null(op);
    assert_false(lr_operator_get_info(op)->stored);
    assert_int_equal(world->log.num_warnings, 1); /* of the operator, not of the trial */
    lr_operator_destroy(op);
    return racers[0].projections;
}

static int trial_of(struct world *world)
{
    return trial_over(world, &world->large);
}

static void test_it_is_remembered(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_true(trial_of(&w) > 0);
    assert_int_equal(trial_of(&w), 0);
    w.params.rays = 3; /* another problem */
    assert_true(trial_of(&w) > 0);
    setenv("LORASTER_CACHE", "off", 1);
    assert_true(trial_of(&w) > 0);
    world_finish(&w);
}

/* A trial takes fewer points than the image has, and what so few say serves this run alone. */
static void test_a_small_image_has_a_short_trial(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    const lr_grid *small = w.params.grid;
    assert_true(trial_over(&w, small) > 0);
    assert_true(racers[0].points < lr_grid_num_voxels(small) * racers[0].projections);
    assert_true(trial_over(&w, small) > 0);
    assert_int_not_equal(access(w.file, F_OK), 0);
    world_finish(&w);
}

static lr_forecast forecast_of(struct world *world, double point_us)
{
    lr_forecast forecast;
    world->params.grid = &world->large;
    world->params.backend = "first";
    world->params.store = LR_STORE_NO;
    line_up(point_us, 20, 100);
    lr_operator *op = lr_operator_create_among(&world->params, choices, 3);
    assert_non_null(op);
    assert_int_equal(lr_operator_forecast_projections(op, 2.0, LR_STORE_NO, &forecast), LR_OK);
    lr_operator_destroy(op);
    return forecast;
}

/* One point that takes long may be what a projection takes in any case: its time for each point is the most that
 * is to be expected, and serves this run alone. */
static void test_one_slow_point_tells_the_most(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    const lr_forecast slow = forecast_of(&w, 150e3);
    const double points = (double)lr_grid_num_voxels(&w.large);
    assert_true(slow.is_most);
    assert_true(fabs(slow.seconds / (points * 2.0 * 0.15) - 1.0) < 1e-6);
    assert_int_not_equal(access(w.file, F_OK), 0);
    const lr_forecast quick = forecast_of(&w, 400.0);
    assert_false(quick.is_most);
    assert_true(fabs(quick.seconds / (points * 2.0 * 400e-6) - 1.0) < 0.2);
    assert_int_equal(access(w.file, F_OK), 0);
    world_finish(&w);
}

/* What was measured while other programs held the processor serves this run alone. */
static void test_it_is_forgotten_under_load(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    waited_share = 0.4;
    assert_true(trial_of(&w) > 0);
    assert_int_not_equal(access(w.file, F_OK), 0);
    waited_share = 0.1;
    assert_true(trial_of(&w) > 0);
    assert_int_equal(access(w.file, F_OK), 0);
    waited_share = 0.0;
    world_finish(&w);
}

static void write_file(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void test_a_spoiled_file_is_measured_anew(void **state)
{
    (void)state;
    static const char spoiled[] = "-3 loraster\n\0\xff\xfe nan x\n1e999 a\n12\nno newline";
    char long_line[5000];
    struct world w;
    world_init(&w);
    memset(long_line, '7', sizeof(long_line));
    write_file(w.file, spoiled, sizeof(spoiled));
    assert_true(trial_of(&w) > 0);
    write_file(w.file, long_line, sizeof(long_line));
    assert_true(trial_of(&w) > 0);
    assert_int_equal(trial_of(&w), 0); /* the file is whole again */
    world_finish(&w);
}

/* A cache that cannot be made is no concern of the user's. */
static void test_without_a_place_it_is_measured(void **state)
{
    (void)state;
    char below_a_file[256];
    struct world w;
    world_init(&w);
    write_file(w.file, "x", 1);
    snprintf(below_a_file, sizeof(below_a_file), "%s/deeper", w.file);
    setenv("LORASTER_CACHE", below_a_file, 1);
    for (int k = 0; k < 2; k++) assert_true(trial_of(&w) > 0);
    world_finish(&w);
}

static void test_the_usual_place(void **state)
{
    (void)state;
    char path[512], cwd[256];
    struct world w;
    world_init(&w);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(path, sizeof(path), "%s/%s", cwd, w.folder);
    unsetenv("LORASTER_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", path, 1);
    assert_true(trial_of(&w) > 0);
    snprintf(path, sizeof(path), "%s/.cache/loraster/speeds.txt", w.folder);
    assert_int_equal(remove(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    world_finish(&w);
}

static void test_who_cannot_run_is_left_out(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    line_up(20, 400, 100);
    racers[0].answer = LR_NO_DEVICE;
    expect(&w, 3, "second");
    racers[1].answer = LR_USAGE; /* too many LORs, say */
    expect(&w, 3, "rows");
    racers[2].answer = LR_NO_DEVICE;
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_int_equal(w.log.status, LR_NO_DEVICE);
    assert_non_null(strstr(w.log.error, "stays at home"));
    racers[0].answer = LR_OK;
    racers[0].is_emulated = true; /* and is let go again */
    racers[1].answer = LR_FAILED; /* an error is an error */
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_int_equal(w.log.status, LR_FAILED);
    world_finish(&w);
}

/* A graphics processor that is there and cannot do what is asked is a warning, whoever serves instead and
 * whatever others lack; none where another backend runs on it. */
static void test_a_graphics_processor_is_not_left_unsaid(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int k = 0; k < 4; k++) {
        line_up(20, 400, 100);
        racers[0].is_gpu = true;
        racers[0].answer = LR_USAGE; /* too many LORs, say */
        racers[1].answer = k == 1 ? LR_NO_DEVICE : LR_OK;
        racers[1].is_gpu = k == 2;
        w.params.mode = k == 3 ? LR_MODE_EXACT : LR_MODE_SAMPLED; /* which the second has not */
        w.log.num_warnings = 0;
        lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
        assert_non_null(op);
        const lr_operator_info *info = lr_operator_get_info(op);
        assert_string_equal(info->backend, k == 1 || k == 3 ? "rows" : "second");
        assert_int_equal(w.log.num_warnings, k == 2 ? 1 : 2); /* "is here" is one */
        if (k == 2) {
            assert_null(info->passed_over);
        } else {
            assert_string_equal(info->passed_over, "first cannot run here: first stays at home");
            assert_non_null(strstr(w.log.warning, "and not the graphics processor: first cannot"));
        }
        lr_operator_destroy(op);
    }
    world_finish(&w);
}

/* Of a list the first that can is taken; what the others lack is kept, not said. */
static void test_lists(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.backend = "first, second";
    line_up(20, 400, 100);
    expect(&w, 3, "first");
    for (int k = 0; k < 3; k++) {
        static const lr_status answers[] = {LR_NO_DEVICE, LR_USAGE, LR_FAILED};
        racers[0].answer = answers[k];
        lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
        assert_non_null(op);
        assert_string_equal(lr_operator_get_info(op)->backend, "second");
        assert_string_equal(lr_operator_get_info(op)->passed_over, "first cannot run here: first stays at home");
        lr_operator_destroy(op);
        expect(&w, 3, "second"); /* nothing is said of the first */
    }
    /* second has no exact mode, whoever asks; the mode is that of the one taken. */
    w.params.backend = "second,rows";
    w.params.mode = LR_MODE_EXACT;
    expect(&w, 3, "rows");
    w.params.mode = LR_MODE_AUTO;
    w.params.rays = 0;
    w.params.backend = "first,second";
    racers[0].answer = LR_OK;
    expect(&w, 3, "first");
    assert_int_equal(racers[0].mode, LR_MODE_EXACT);
    racers[0].answer = LR_FAILED;
    expect(&w, 3, "second");
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    /* Where none can, the last one says why; to be stopped is no reason to try another. */
    racers[1].answer = LR_NO_DEVICE;
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_int_equal(w.log.status, LR_NO_DEVICE);
    assert_string_equal(w.log.error, "second stays at home");
    racers[0].answer = LR_CANCELLED;
    const int before = racers[1].creations;
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_int_equal(racers[1].creations, before);
    w.params.backend = "first,third";
    racers[0].answer = LR_NO_DEVICE;
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_non_null(strstr(w.log.error, "there is no backend \"third\""));
    world_finish(&w);
}

static void test_auto_mode(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.mode = LR_MODE_AUTO;
    w.params.rays = 0;
    line_up(400, 20, 100);
    racers[0].answer = LR_NO_DEVICE;
    expect(&w, 3, "rows"); /* exact is asked for first */
    assert_int_equal(racers[2].mode, LR_MODE_EXACT);
    assert_int_equal(racers[1].creations, 0);
    racers[2].answer = LR_NO_DEVICE;
    expect(&w, 3, "second");
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    w.params.backend = "second";
    expect(&w, 3, "second");
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    racers[0].answer = LR_OK;
    w.params.backend = "first";
    expect(&w, 3, "first");
    assert_int_equal(racers[0].mode, LR_MODE_EXACT);
    w.params.rays = 3; /* somebody expects lines */
    lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
    assert_non_null(op);
    assert_non_null(strstr(w.log.warning, "rays = 3 is not used"));
    lr_operator_destroy(op);
    world_finish(&w);
}

static void test_penetration_and_determinism_are_passed_on(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    line_up(400, 20, 100);
    w.params.penetration = true;
    expect(&w, 3, "first");
    assert_int_equal(w.log.num_warnings, 2); /* "first is here", and what crystals are taken for */
    w.fixture.scanner->crystal_mu_per_mm = 0.087;
    expect(&w, 3, "first");
    assert_int_equal(w.log.num_warnings, 1);
    w.params.backend = "second";
    assert_null(lr_operator_create_among(&w.params, choices, 3));
    assert_int_equal(w.log.status, LR_USAGE);
    assert_non_null(strstr(w.log.error, "second has no crystal penetration: use backend first, or"));
    w.params.backend = "auto";
    assert_null(lr_operator_create_among(&w.params, choices + 1, 2));
    assert_non_null(strstr(w.log.error, "has no crystal penetration"));
    w.params.deterministic = true;
    lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
    assert_non_null(op);
    const struct lr_operator *inside = op;
    assert_true(inside->params.penetration && inside->params.deterministic);
    lr_operator_destroy(op);
    world_finish(&w);
}

static const struct lr_backend_choice choices_with_reference[] = {
    {.name = "rows", .has_exact = true, .is_reference = true, .create = create_rows},
    {.name = "first", .has_exact = true, .has_penetration = true, .create = create_first},
    {.name = "second", .create = create_second},
};

/* The reference only where no other runs. */
static void test_the_reference_comes_last(void **state)
{
    (void)state;
    const struct lr_choices with_reference = {choices_with_reference, 3};
    struct world w;
    world_init(&w);
    line_up(1, 1, 1);
    expect_of(&w, &with_reference, "first");
    racers[0].is_emulated = racers[1].is_emulated = true;
    expect_of(&w, &with_reference, "first");
    assert_int_equal(racers[2].creations, 0);
    racers[0].answer = racers[1].answer = LR_NO_DEVICE;
    expect_of(&w, &with_reference, "rows");
    assert_int_equal(num_timed(), 0);
    world_finish(&w);
}

/* Whether backend "first" keeps its matrix. */
static bool keeps(struct world *world, double projections, double row_us)
{
    line_up(400, 20, 100);
    racers[0].row_us = row_us;
    world->params.projections = projections;
    lr_operator *op = lr_operator_create_among(&world->params, choices, 3);
    assert_non_null(op);
    const bool stored = lr_operator_get_info(op)->stored;
    lr_operator_destroy(op);
    return stored;
}

/* Projections of a voxel take 0.4 ms each way. */
static void test_a_matrix_is_kept_where_it_pays(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    setenv("LORASTER_CACHE", "off", 1);
    w.params.backend = "first";
    w.params.store = LR_STORE_AUTO;
    w.params.samples[0] = w.params.samples[1] = w.params.samples[2] = 1;
    const double voxels = (double)lr_grid_num_voxels(&w.fixture.grid);
    const double many = 10.0 / (400e-6 * voxels), few = 0.5 / (400e-6 * voxels); /* 10 s, 0.5 s */
    assert_true(keeps(&w, many, 5e6 / voxels));
    assert_true(racers[0].projections > 0);
    assert_false(keeps(&w, many, 20e6 / voxels));
    assert_true(racers[0].rows < 60 + (int)voxels / 2); /* it does not wait for the end to see it */
    assert_false(keeps(&w, few, 1));
    assert_int_equal(racers[0].rows, 0);
    assert_true(keeps(&w, 0, 20e6 / voxels)); /* nobody knows */
    assert_int_equal(racers[0].projections, 0);
    w.params.deterministic = true;
    assert_true(keeps(&w, many, 20e6 / voxels));
    assert_int_equal(racers[0].projections, 0);
    w.params.deterministic = false;
    w.params.store = LR_STORE_YES;
    assert_true(keeps(&w, many, 20e6 / voxels));
    world_finish(&w);
}

/* It has projected anew before the host has read a matrix. */
static void test_a_graphics_processor_keeps_none(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.params.backend = "first";
    for (int k = 0; k < 4; k++) {
        line_up(400, 20, 100);
        racers[0].is_gpu = true;
        w.params.deterministic = (k & 1) != 0;
        w.params.projections = (k & 2) != 0 ? 1e6 : 0.0;
        lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
        assert_non_null(op);
        assert_true(lr_operator_get_info(op)->is_gpu && !lr_operator_get_info(op)->stored);
        assert_int_equal(num_timed(), 0);
        lr_operator_destroy(op);
    }
    w.params.store = LR_STORE_YES;
    lr_operator *op = lr_operator_create_among(&w.params, choices, 3);
    assert_non_null(op);
    assert_true(lr_operator_get_info(op)->stored);
    lr_operator_destroy(op);
    world_finish(&w);
}

static bool stop(void *user, const char *what, double done, double total)
{
    (void)what;
    (void)done;
    (void)total;
    return --*(int *)user > 0;
}

static void test_measuring_can_be_cancelled(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    int reports = 1;
    const lr_progress progress = {stop, &reports};
    w.params.progress = &progress;
    w.params.backend = "first";
    w.params.store = LR_STORE_AUTO;
    w.params.projections = 1e6;
    line_up(400, 20, 100);
    assert_null(lr_operator_create_among(&w.params, choices, 2));
    assert_string_equal(w.log.error, "");
    assert_int_equal(racers[0].projections + racers[1].projections, 1);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_taken),
        cmocka_unit_test(test_the_reference_comes_last),
        cmocka_unit_test(test_it_is_remembered),
        cmocka_unit_test(test_a_small_image_has_a_short_trial),
        cmocka_unit_test(test_one_slow_point_tells_the_most),
        cmocka_unit_test(test_it_is_forgotten_under_load),
        cmocka_unit_test(test_a_spoiled_file_is_measured_anew),
        cmocka_unit_test(test_without_a_place_it_is_measured),
        cmocka_unit_test(test_the_usual_place),
        cmocka_unit_test(test_who_cannot_run_is_left_out),
        cmocka_unit_test(test_a_graphics_processor_is_not_left_unsaid),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_auto_mode),
        cmocka_unit_test(test_penetration_and_determinism_are_passed_on),
        cmocka_unit_test(test_a_matrix_is_kept_where_it_pays),
        cmocka_unit_test(test_a_graphics_processor_keeps_none),
        cmocka_unit_test(test_measuring_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
