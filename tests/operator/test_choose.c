/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests which backend and mode an operator uses, and whether it stores a matrix. */
#include "fixtures.h"

#include "base/log.h"
#include "made_up_backends.h"
#include "operator/facade.h"
#include <lr/forecast.h>

/* A made-up backend, and counts of its calls. */
struct racer {
    const char *device;
    lr_status answer; /* result of its constructor */
    int projections, rows, creations;
    lr_mode mode;
    bool is_gpu, is_emulated;
};

static struct racer racers[3];

struct runner {
    struct racer *racer;
    struct lr_backend_params params;
};

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct runner *runner = self;
    runner->racer->projections++;
    return lr_vector_fill(out, 0.0);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct runner *runner = self;
    for (int64_t row = wanted->begin; row < wanted->end; row++) {
        const int64_t lor = 0;
        const double value = 1.0;
        runner->racer->rows++;
        LR_TRY(sink->take(sink->user, &(lr_row){.row = row, .count = 1, .lor = &lor, .probability = &value}));
    }
    return LR_OK;
}

static lr_status create(int which, const struct lr_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns[3] = {
        {.name = "first", .project = project, .rows = rows, .destroy = free},
        {.name = "second", .project = project, .rows = rows, .destroy = free},
        {.name = "rows", .projects_by_rows = true, .project = project, .rows = rows, .destroy = free}};
    struct racer *racer = &racers[which];
    racer->creations++;
    backend->is_gpu = racer->is_gpu;
    if (racer->answer != LR_OK) return lr_error(params->log, racer->answer, "%s stays at home", fns[which].name);
    lr_warn(params->log, "%s is here", fns[which].name);
    struct runner *runner = non_null(malloc(sizeof(*runner)));
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
    {.name = "rows", .has_exact = true, .create = create_rows}};

static struct world {
    struct fixture fixture;
    struct test_log log;
    lr_operator_params params;
} w;

/* All three backends have devices, and the counts are 0. */
static void line_up(void)
{
    racers[0] = (struct racer){.device = "lane 1"};
    racers[1] = (struct racer){.device = "lane 2"};
    racers[2] = (struct racer){.device = "lane 3"};
}

static int set_up(void **state)
{
    w = (struct world){.fixture = kept_fixture(FIXTURE_OPPOSED)};
    test_log_init(&w.log);
    w.params = fixture_params(&w.fixture, "auto", &w.log.log);
    line_up();
    return 0;
}

static lr_operator *create_one(void)
{
    return lr_operator_create_among(&w.params, choices, 3);
}

/* Checks which of the choices is used. */
static void expect_among(const struct lr_backend_choice *among, const char *backend)
{
    w.log.error[0] = '\0';
    w.log.num_warnings = 0;
    lr_operator *op = keep(lr_operator_create_among(&w.params, among, 3));
    const int which = strcmp(backend, "first") == 0 ? 0 : strcmp(backend, "second") == 0 ? 1 : 2;
    assert_string_equal(lr_operator_get_info(op)->backend, backend);
    assert_string_equal(w.log.error, "");
    assert_int_equal(lr_operator_get_info(op)->mode, racers[which].mode);
}

static void expect(const char *backend)
{
    expect_among(choices, backend);
}

static int num_timed(void)
{
    return racers[0].projections + racers[1].projections + racers[2].projections + racers[0].rows + racers[1].rows +
           racers[2].rows;
}

/* Takes the first backend in the list that can be created and is not emulated; if there is none, the first that can be
 * created. No backend is timed. */
static void test_the_first_is_taken(void **state)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        w.params.deterministic = deterministic;
        line_up();
        expect("first");
        spoilt(racers[0].answer = LR_NO_DEVICE, expect("second"));
        racers[0].answer = LR_OK;
        spoilt(racers[0].is_emulated = true, expect("second"));
        spoilt(racers[1].is_emulated = true, expect("rows"));
        spoilt(racers[2].answer = LR_USAGE, expect("first"));
        assert_int_equal(num_timed(), 0);
    }
}

static void test_who_cannot_run_is_left_out(void **state)
{
    racers[0].answer = LR_NO_DEVICE;
    w.params.backend = "first"; /* a backend that is named is not replaced */
    assert_none(create_one(), LR_NO_DEVICE, &w.log, "first stays at home");
    w.params.backend = NULL;
    expect("second");
    racers[1].answer = LR_USAGE; /* for example: too many LORs */
    expect("rows");
    racers[2].answer = LR_NO_DEVICE;
    assert_none(create_one(), LR_NO_DEVICE, &w.log, "stays at home");
    racers[0].answer = LR_OK;
    racers[0].is_emulated = true; /* created, but then destroyed again */
    racers[1].answer = LR_FAILED; /* LR_FAILED ends the search */
    assert_null(create_one());
    assert_int_equal(w.log.status, LR_FAILED);
}

/* A warning is given if a graphics processor exists but cannot do the work, whichever backend is used instead and
 * whatever others lack. There is no warning if another backend uses the graphics processor. */
static void test_a_graphics_processor_is_not_left_unsaid(void **state)
{
    for (int k = 0; k < 4; k++) {
        line_up();
        racers[0].is_gpu = true;
        racers[0].answer = LR_USAGE; /* for example: too many LORs */
        racers[1].answer = k == 1 ? LR_NO_DEVICE : LR_OK;
        racers[1].is_gpu = k == 2;
        w.params.mode = k == 3 ? LR_MODE_EXACT : LR_MODE_SAMPLED; /* second has no exact mode */
        w.log.num_warnings = 0;
        const lr_operator_info *info = lr_operator_get_info(keep(create_one()));
        assert_string_equal(info->backend, k == 1 || k == 3 ? "rows" : "second");
        assert_int_equal(w.log.num_warnings, k == 2 ? 1 : 2); /* "is here" is one of them */
        if (k == 2) {
            assert_null(info->passed_over);
        } else {
            assert_string_equal(info->passed_over, "first cannot run here: first stays at home");
            assert_says(w.log.warning, "and not the graphics processor: first cannot");
        }
    }
}

/* The first backend of a list that can be created is used. Reasons why earlier ones cannot be created are kept, but not
 * logged. */
static void test_lists(void **state)
{
    w.params.backend = "first, second";
    expect("first");
    for (int k = 0; k < 3; k++) {
        static const lr_status answers[] = {LR_NO_DEVICE, LR_USAGE, LR_FAILED};
        racers[0].answer = answers[k];
        lr_operator *op = keep(create_one());
        assert_string_equal(lr_operator_get_info(op)->backend, "second");
        assert_string_equal(lr_operator_get_info(op)->passed_over, "first cannot run here: first stays at home");
        expect("second"); /* no message about the first */
    }
    /* second has no exact mode, for any caller; the mode is that of the backend that is used. */
    w.params.backend = "second,rows";
    w.params.mode = LR_MODE_EXACT;
    expect("rows");
    w.params.mode = LR_MODE_AUTO;
    w.params.rays = 0;
    w.params.backend = "first,second";
    racers[0].answer = LR_OK;
    expect("first");
    assert_int_equal(racers[0].mode, LR_MODE_EXACT);
    spoilt(racers[0].answer = LR_FAILED, expect("second"));
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    /* If no backend of a list can be created, the error is that of the last one. A cancelled creation ends the
     * search. */
    racers[1].answer = LR_NO_DEVICE;
    assert_null(create_one());
    assert_int_equal(w.log.status, LR_NO_DEVICE);
    assert_string_equal(w.log.error, "second stays at home");
    racers[0].answer = LR_CANCELLED;
    const int before = racers[1].creations;
    assert_null(create_one());
    assert_int_equal(racers[1].creations, before);
    w.params.backend = "first,third";
    racers[0].answer = LR_NO_DEVICE;
    assert_null(create_one());
    assert_says(w.log.error, "the family correspondence has no backend \"third\"");
}

static void test_auto_mode(void **state)
{
    w.params.mode = LR_MODE_AUTO;
    w.params.rays = 0;
    racers[0].answer = LR_NO_DEVICE;
    expect("rows"); /* exact is tried first */
    assert_ints(racers[2].mode, LR_MODE_EXACT, racers[1].creations, 0);
    spoilt(racers[2].answer = LR_NO_DEVICE, expect("second"));
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    w.params.backend = "second";
    expect("second");
    assert_int_equal(racers[1].mode, LR_MODE_SAMPLED);
    racers[0].answer = LR_OK;
    w.params.backend = "first";
    expect("first");
    assert_int_equal(racers[0].mode, LR_MODE_EXACT);
    w.params.rays = 3; /* rays: the user expects sampled lines */
    keep(create_one());
    assert_says(w.log.warning, "rays = 3 is not used");
}

static void test_penetration_and_determinism_are_passed_on(void **state)
{
    w.params.penetration = true;
    expect("first");
    assert_int_equal(w.log.num_warnings, 2); /* "first is here", and the assumed crystal material */
    w.fixture.scanner->crystal_mu_per_mm = 0.087;
    expect("first");
    assert_int_equal(w.log.num_warnings, 1);
    w.params.backend = "second";
    assert_none(create_one(), LR_USAGE, &w.log, "second has no crystal penetration: use backend first, or");
    w.params.backend = "auto";
    assert_null(lr_operator_create_among(&w.params, choices + 1, 2));
    assert_says(w.log.error, "has no crystal penetration");
    w.params.deterministic = true;
    const struct lr_operator *inside = keep(create_one());
    assert_true(inside->params.penetration && inside->params.deterministic);
}

static const struct lr_backend_choice choices_with_reference[] = {
    {.name = "rows", .has_exact = true, .is_reference = true, .create = create_rows},
    {.name = "first", .has_exact = true, .has_penetration = true, .create = create_first},
    {.name = "second", .create = create_second}};

/* The reference is used if no other backend can be created, or all others are on a software renderer, which is slower.
 * Without the reference, the software renderer is used. */
static void test_the_reference_comes_before_a_software_renderer(void **state)
{
    expect_among(choices_with_reference, "first");
    assert_int_equal(racers[2].creations, 0);
    spoilt(racers[0].is_emulated = racers[1].is_emulated = true, expect_among(choices_with_reference, "rows"));
    spoilt(racers[2].answer = LR_NO_DEVICE, expect_among(choices_with_reference, "first"));
    racers[2].answer = LR_OK;
    spoilt(racers[0].answer = racers[1].answer = LR_NO_DEVICE, expect_among(choices_with_reference, "rows"));
    assert_int_equal(num_timed(), 0);
}

/* True if the named backend stores its matrix for this number of projections. */
static bool keeps(const char *backend, double projections)
{
    w.params.backend = backend;
    w.params.projections = projections;
    const bool stored = lr_operator_get_info(keep(create_one()))->stored;
    assert_int_equal(racers[0].projections + racers[1].projections + racers[2].projections, 0);
    return stored;
}

static void test_a_matrix_is_kept_where_it_pays(void **state)
{
    w.params.store = LR_STORE_AUTO;
    assert_true(keeps("first", 3.0));
    const int64_t voxels = lr_grid_num_voxels(&w.fixture.grid);
    assert_true(racers[0].rows >= voxels);
    const int made = racers[0].rows;
    assert_false(keeps("first", 2.0));
    assert_int_equal(racers[0].rows, made);
    assert_true(keeps("first", 0.0)); /* 0: the number is not known */
    assert_true(keeps("rows", 2.0));  /* a projection takes as long as all rows */
    assert_false(keeps("rows", 1.0));
    racers[0].is_emulated = true;
    assert_false(keeps("first", 1e6));
    assert_true(keeps("first", 0.0));
    w.params.deterministic = true;
    assert_true(keeps("first", 1.0));
    w.params.deterministic = false;
    w.params.store = LR_STORE_YES;
    assert_true(keeps("first", 1.0));
    w.params.store = LR_STORE_NO;
    assert_false(keeps("rows", 1e6));
}

/* The forecast includes the memory of a matrix that will be stored: eight bytes for each element. */
static void test_a_forecast_counts_the_matrix(void **state)
{
    w.params.backend = "first";
    w.params.store = LR_STORE_NO;
    lr_operator *op = keep(create_one());
    const double matrix = 8.0 * (double)lr_grid_num_voxels(&w.fixture.grid); /* one element in each row */
    lr_forecast none, few, many, wanted;
    assert_ok(lr_operator_forecast_projections(op, 100.0, LR_STORE_NO, &none));
    assert_ok(lr_operator_forecast_projections(op, 2.0, LR_STORE_AUTO, &few));
    assert_ok(lr_operator_forecast_projections(op, 100.0, LR_STORE_AUTO, &many));
    assert_ok(lr_operator_forecast_projections(op, 2.0, LR_STORE_YES, &wanted));
    assert_true(few.memory_bytes == none.memory_bytes);
    assert_close(many.memory_bytes - none.memory_bytes, matrix, 1e-12);
    assert_close(wanted.memory_bytes - none.memory_bytes, matrix, 1e-12);
    assert_int_equal(racers[0].projections, 0);
}

/* A graphics processor stores no matrix, because it projects faster than the host reads one. */
static void test_a_graphics_processor_keeps_none(void **state)
{
    w.params.backend = "first";
    for (int k = 0; k < 4; k++) {
        line_up();
        racers[0].is_gpu = true;
        w.params.deterministic = (k & 1) != 0;
        w.params.projections = (k & 2) != 0 ? 1e6 : 0.0;
        lr_operator *op = keep(create_one());
        assert_true(lr_operator_get_info(op)->is_gpu && !lr_operator_get_info(op)->stored);
        assert_int_equal(num_timed(), 0);
    }
    w.params.store = LR_STORE_YES;
    assert_true(lr_operator_get_info(keep(create_one()))->stored);
}

static bool stop(void *user, const char *what, double done, double total)
{
    return --*(int *)user > 0;
}

static void test_making_a_matrix_can_be_cancelled(void **state)
{
    int reports = 1;
    const lr_progress progress = {stop, &reports};
    w.params.progress = &progress;
    w.params.backend = "first";
    w.params.store = LR_STORE_AUTO;
    w.params.projections = 1e6;
    assert_null(lr_operator_create_among(&w.params, choices, 2));
    assert_string_equal(w.log.error, "");
    assert_int_equal(racers[0].rows, 0);
}

test_main("operator_test_choose",
          CASES_SET_UP(test_the_first_is_taken, test_the_reference_comes_before_a_software_renderer,
                       test_who_cannot_run_is_left_out, test_a_graphics_processor_is_not_left_unsaid, test_lists,
                       test_auto_mode, test_penetration_and_determinism_are_passed_on,
                       test_a_matrix_is_kept_where_it_pays, test_a_graphics_processor_keeps_none,
                       test_a_forecast_counts_the_matrix, test_making_a_matrix_can_be_cancelled))
