/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The laws of operators (laws.h) for every family that the backend named by argv[1] computes. Vectors are on the
 * host, at an OpenGL place and at a CUDA place, in either precision. Also tested: progress and cancelling of calls,
 * and child processes after fork(). A place that the machine lacks is reported as "skipped". With LR_TEST_FAKE_CUDA
 * the CUDA device is the machine's memory. */
#include "fixtures.h"
#include "operator/laws.h"

#include "device/place.h"
#include "gl/context.h"

#include <lr/design.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LR_TEST_FAKE_CUDA
#include "fake_cuda.h"
#endif

static int num_checked; /* number of operators */
static struct test_log test;
static struct gl_context *caller; /* current, or NULL: there is no OpenGL */
static lr_shared_context shared;
static lr_place *cuda; /* NULL: there is none */

/* --- every place and precision --- */

/* The operator's own place, kept for a further owner, or NULL if its place is of another kind. */
static lr_place *keep_own(const lr_operator *op, lr_place_kind kind)
{
    lr_place *place = lr_operator_place(op);
    return place != NULL && lr_place_get_info(place).kind == kind ? lr_place_keep(place) : NULL;
}

/* --- listening to a call, and stopping it --- */

struct listener {
    lr_progress progress; /* pass &listener.progress */
    int num_reports, stop_at;
};

static bool hear(void *user, const char *what, double done, double total)
{
    struct listener *listener = user;
    if (what == NULL || !(done >= 0.0 && done <= total)) fail_msg("%s: %g of %g", what, done, total);
    return ++listener->num_reports != listener->stop_at;
}

enum { FORWARD = 0, BACK, SENSITIVITY, ROWS, NUM_CALLS };

static lr_status make_call(lr_operator *op, int call, const lr_vector *values, const lr_vector *image)
{
    int32_t all[64];
    const int64_t num_pairs = lr_operator_get_info(op)->lors->num_pairs;
    assert_true(num_pairs <= 64);
    for (int k = 0; k < num_pairs; k++) all[k] = k;
    /* The sensitivity of all LORs is stored; the sensitivity of a part is not. */
    const lr_selection part = {.pairs = all, .num_pairs = num_pairs};
    lr_vector y = *values, x = *image;
    switch (call) {
    case FORWARD: return lr_operator_forward(op, NULL, image, &y);
    case BACK: return lr_operator_back(op, NULL, values, &x);
    case SENSITIVITY: return lr_operator_sensitivity(op, &part, &x);
    default: {
        struct dense_rows rows = {.num_lors = values->count};
        return lr_operator_rows(op, 0, x.count, &(lr_row_sink){dense_rows_take, &rows});
    }
    }
}

/* A call reports to its own listener and ends as soon as the listener wants; afterwards the operator works as before.
 * The message of a failure is in the call's log; without a log it is the last error. */
static void check_listening(const struct law_subject *subject)
{
    lr_operator *op = subject->op;
    const lr_operator_info *info = lr_operator_get_info(op);
    double *numbers[2] = {kept_doubles(info->num_lors), kept_doubles(info->num_voxels)};
    const lr_vector values = lr_vector_of_doubles(numbers[0], info->num_lors);
    const lr_vector image = lr_vector_of_doubles(numbers[1], info->num_voxels);
    struct test_log heard;
    lr_status status;
    for (int call = 0; call < NUM_CALLS; call++) {
        if (call == SENSITIVITY && info->of_events) continue; /* stored for all parts by the laws */
        for (int k = 0; k < info->num_voxels; k++) numbers[1][k] = 1.0;
        struct listener listener = {.stop_at = 1};
        listener.progress = (lr_progress){hear, &listener};
        test_log_init(&heard);
        lr_operator_listen(op, &heard.log, &listener.progress);
        status = make_call(op, call, &values, &image);
        if (status != LR_CANCELLED || listener.num_reports != 1)
            fail_msg("%s: call %d is not stopped: %s, %d reports", subject->name, call, lr_status_name(status),
                     listener.num_reports);
        assert_string_equal(heard.error, "");
        (void)lr_last_error(&status);
        assert_int_equal(status, LR_CANCELLED);

        listener.stop_at = 0;
        assert_ok(make_call(op, call, &values, &image));
        assert_true(listener.num_reports > 1);
        const int num_reports = listener.num_reports;
        lr_operator_listen(op, NULL, NULL);
        assert_ok(make_call(op, call, &values, &image));
        assert_int_equal(listener.num_reports, num_reports);
    }

    numbers[1][0] = NAN;
    lr_operator_listen(op, &heard.log, NULL);
    assert_int_equal(make_call(op, FORWARD, &values, &image), LR_BAD_INPUT);
    assert_says(heard.error, "voxel (0, 0, 0)");
    assert_string_equal(lr_last_error(&status), heard.error);
    assert_int_equal(status, LR_BAD_INPUT);
    numbers[1][0] = 1.0;
    numbers[1][1] = NAN;
    lr_operator_listen(op, NULL, NULL);
    assert_int_equal(make_call(op, FORWARD, &values, &image), LR_BAD_INPUT);
    assert_says(lr_last_error(NULL), "voxel (1, 0, 0)");
    lr_operator_listen(op, &test.log, NULL);
}

/* --- children of fork() --- */

/* True if the message of a refusal names the device of the parent that the child lacks. */
static bool is_refused(void)
{
    lr_status status;
    return strstr(lr_last_error(&status), "was forked from") != NULL && status == LR_NO_DEVICE;
}

/* Runs in the child process. Returns true if projections are right and no device of the parent is opened. */
static bool is_right_in_child(lr_operator *op, const lr_vector *image, const double *expected)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    double *found = kept_doubles(info->num_lors);
    lr_vector values = lr_vector_of_doubles(found, info->num_lors);
    const lr_status status = lr_operator_forward(op, NULL, image, &values);
    /* A stored matrix is projected on the host. */
    const bool needs_device = !test_backend_is("cpu") && !test_backend_is("native") && !info->stored;
    bool is_right = needs_device
                        ? status == LR_NO_DEVICE && is_refused()
                        : status == LR_OK && memcmp(found, expected, (size_t)values.count * sizeof(*found)) == 0;
    lr_operator_destroy(op);

    lr_device devices[4];
    if (caller != NULL) is_right = is_right && lr_device_list(devices, 4, NULL) == 0 && is_refused();
    if (caller != NULL)
        is_right = is_right && lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL}) == NULL && is_refused();
    if (cuda != NULL)
        is_right = is_right && lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA}) == NULL && is_refused();
    return is_right;
}

static void check_child(const struct law_subject *subject)
{
    lr_operator *op = subject->op;
    const lr_operator_info *info = lr_operator_get_info(op);
    double *numbers[2] = {kept_doubles(info->num_lors), kept_doubles(info->num_voxels)};
    lr_vector values = lr_vector_of_doubles(numbers[0], info->num_lors);
    const lr_vector image = lr_vector_of_doubles(numbers[1], info->num_voxels);
    for (int k = 0; k < info->num_voxels; k++) numbers[1][k] = 1.0 + k % 7;
    assert_ok(lr_operator_forward(op, NULL, &image, &values));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* if a driver waits for its threads for ever */
        _exit(is_right_in_child(op, &image, numbers[0]) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: the child %s", subject->name, WIFSIGNALED(status) ? "hung, or was ended" : "is wrong");
    assert_ok(lr_operator_forward(op, NULL, &image, &values)); /* the parent still works */
}

/* --- operators --- */

/* Checks an operator and destroys it. NULL: skips the test if a device is missing, fails it otherwise. */
static void check_operator(const char *name, lr_operator *op)
{
    if (op == NULL && test.status == LR_NO_DEVICE) {
        print_message("skipped: %s: %s\n", name, test.error);
        return;
    }
    if (op == NULL) fail_msg("%s: %s", name, test.error);
    const char *made = lr_operator_get_info(op)->backend;
    if (strcmp(made, test_backend) == 0) {
        num_checked++;
        /* Devices add floats in any order (2e-6); a stored matrix has floats (2e-7); the rest is double. */
        const bool is_stored = lr_operator_get_info(op)->stored;
        const struct law_subject subject = {name, op, !test_backend_is("cpu") ? 2e-6 : is_stored ? 2e-7 : 1e-12};
        /* The place of a device is the operator's own if it has one, otherwise any. */
        lr_place *own[2] = {keep_own(subject.op, LR_PLACE_GL), keep_own(subject.op, LR_PLACE_CUDA)}, *gl = own[0];
        if (gl == NULL && caller != NULL)
            gl = lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL, .shared = &shared, .log = &test.log});
        const struct law_place places[3] = {
            {"the host", NULL, NULL},
            {own[0] != NULL ? "the operator's OpenGL" : "OpenGL", gl, gl != NULL && gl->shares ? caller : NULL},
            {own[1] != NULL ? "the operator's CUDA" : "CUDA", own[1] != NULL ? own[1] : cuda, NULL}};
        for (int k = 0; k < 3; k++) {
            if (k > 0 && places[k].place == NULL) {
                print_message("skipped: %s: no place at %s\n", subject.name, places[k].name);
                continue;
            }
            for (int precision = 0; precision < 2; precision++)
                laws_check(&subject, &places[k], (lr_precision)precision);
        }
        lr_place_close(gl);
        lr_place_close(own[1]);
        check_listening(&subject);
        check_child(&subject);
        double fwhm_mm[3];
        if (lr_operator_get_info(op)->lors == NULL) {
            assert_fails(lr_point_image_fwhm(&(lr_point_image_params){.op = op, .log = &test.log}, fwhm_mm), LR_USAGE,
                         &test, "family correspondence");
        }
    } else {
        print_message("skipped: %s: %s stands in for %s\n", name, made, test_backend);
    }
    lr_operator_destroy(op);
}

static bool has(const char *const *backends)
{
    for (int k = 0; backends[k] != NULL; k++)
        if (strcmp(backends[k], test_backend) == 0) return true;
    print_message("the family has no backend %s\n", test_backend);
    return false;
}

/* A fixture with fewer voxels; the laws hold for it, too. */
static struct fixture kept_small(enum fixture_kind kind)
{
    static const int size[3] = {4, 5, 3};
    struct fixture fixture = kept_fixture(kind);
    for (int k = 0; k < 3; k++) {
        fixture.grid.origin_mm[k] += 0.5 * (fixture.grid.size[k] - size[k]) * fixture.grid.voxel_mm[k];
        fixture.grid.size[k] = size[k];
    }
    return fixture;
}

/* --- family correspondence --- */

/* One way through the backends: by columns, by pairs, by points; with factors, and with a stored matrix. */
static const struct matrix_case {
    const char *name;
    enum fixture_kind kind;
    lr_mode mode;
    bool has_factors, is_stored;
    const char *but_for; /* backends without this way */
} matrix_cases[] = {{"ring, sampled, with factors", FIXTURE_RING, LR_MODE_SAMPLED, true, false, ""},
                    {"ring, exact", FIXTURE_RING, LR_MODE_EXACT, false, false, "raster"},
                    {"tilted pair, exact", FIXTURE_TILTED, LR_MODE_EXACT, false, false, "native raster"},
                    {"unequal pair, stored", FIXTURE_UNEQUAL, LR_MODE_SAMPLED, true, true, ""}};

static void correspondence(void **state)
{
    static const char *const backends[] = {"native", "cpu", "compute", "raster", NULL};
    if (!has(backends)) return;
    for (size_t k = 0; k < sizeof(matrix_cases) / sizeof(*matrix_cases); k++) {
        const struct matrix_case *with = &matrix_cases[k];
        if (strstr(with->but_for, test_backend) != NULL) continue;
        const struct fixture fixture = kept_small(with->kind);
        lr_operator_params params = fixture_params(&fixture, test_backend, &test.log);
        params.mode = with->mode;
        params.rays = with->mode == LR_MODE_SAMPLED ? 2 : 0;
        params.factors = with->has_factors ? &fixture_factors : NULL;
        params.store = with->is_stored ? LR_STORE_YES : LR_STORE_NO;
        params.shared = caller != NULL && (test_backend_is("compute") || test_backend_is("raster")) ? &shared : NULL;
        check_operator(with->name, lr_operator_create(&params));
    }
}

/* --- family direct --- */

static void direct(void **state)
{
    static const char *const backends[] = {"cpu", "compute", "cuda", NULL};
    static const lr_view views[3] = {{0, 0}, {40, 8}, {110, -8}};
    const lr_grid grid = lr_grid_centred((const int[3]){11, 12, 7}, (const double[3]){4, 4, 4});
    if (!has(backends)) return;
    for (int k = 0; k < 2; k++) {
        const lr_direct_params params =
            filled(lr_direct_params, .grid = &grid, .views = views, .num_views = 3,
                   .kernel = {.resolution = filled(lr_resolution, .tof_ps = 45, .model = LR_RADIAL_LINEAR,
                                                   .radial_mm = 3, .radial_edge_mm = 5, .edge_mm = 24, .axial_mm = 4)},
                   .backend = test_backend, .threads = 2, .shared = caller != NULL ? &shared : NULL,
                   .storage = k == 0 ? LR_DIRECT_BUFFERS : LR_DIRECT_TEXTURES,
                   .factors = k == 0 ? &fixture_factors : NULL, .log = &test.log);
        check_operator(k == 0 ? "histo-images in buffers, with factors" : "histo-images in textures",
                       lr_direct_create(&params));
    }
}

/* --- family listmode --- */

enum { NUM_EVENTS = 300 };

static void listmode(void **state)
{
    static const char *const backends[] = {"native", "cpu", "compute", "cuda", NULL};
    static const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 300};
    static lr_event events[NUM_EVENTS];
    uint64_t seed = 17;
    if (!has(backends)) return;
    const struct fixture fixture = kept_small(FIXTURE_RING);
    for (int k = 0; k < NUM_EVENTS; k++) {
        const int64_t number = (int64_t)(test_random(&seed) * (double)fixture.lors->count);
        events[k] = (lr_event){.tof_mm = (float)(20 * test_random(&seed) - 10), .weight = 1};
        lr_lors_crystals(fixture.lors, number, events[k].crystals);
    }
    for (int k = 0; k < 2; k++) {
        const lr_listmode_params params = filled(
            lr_listmode_params, .lors = fixture.lors, .grid = &fixture.grid, .events = events, .count = NUM_EVENTS,
            .info = k == 0 ? &info : NULL, .num_ranges = 4, .kernel = k == 0 ? LR_LISTMODE_TUBE : LR_LISTMODE_LINE,
            .factors = k == 0 ? &fixture_factors : NULL, .backend = test_backend, .threads = 2, .log = &test.log);
        check_operator(k == 0 ? "events in tubes, with factors" : "events on lines", lr_listmode_create(&params));
    }
}

/* --- setup --- */

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {CASES(correspondence, direct, listmode)};
    test_backend = argc > 1 ? argv[1] : "cpu";
    test_log_init(&test);
    /* A child process must be able to open the device exactly if the parent can, before the parent has opened it. */
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(gl_context_create(&(struct gl_context_params){0}) != NULL ? 0 : 1);
    }
    const bool is_open_in_child =
        child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    caller = gl_context_create(&(struct gl_context_params){.log = &test.log});
    if (is_open_in_child != (caller != NULL)) {
        print_message("OpenGL is %s in a child\n", is_open_in_child ? "only" : "not");
        exit(1);
    }
    if (caller == NULL || gl_context_make_current(caller) != LR_OK || !gl_context_share(&shared)) {
        gl_context_destroy(caller);
        caller = NULL;
    }
#ifdef LR_TEST_FAKE_CUDA
    fake_cuda.renders = 0;
#endif
    cuda = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &test.log});
    const int failed = cmocka_run_group_tests_name(test_backend, tests, NULL, NULL);
    lr_place_close(cuda);
    if (caller != NULL) {
        gl_context_release(caller);
        gl_context_destroy(caller);
    }
    return failed == 0 && num_checked == 0 ? 77 : failed;
}
