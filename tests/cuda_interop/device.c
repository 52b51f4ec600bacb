/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Backend cuda of the family `direct`: without CUDA it is compute, and says so; with it every variant
 * projects as cpu does, and reconstructs. An argument, such as "shared memory", names the only variant
 * to use, shortens batches and leaves out the test that iterates longest: for tools that are slow.
 * Another one is a pattern of the tests to run, such as "batches*". */
#include "direct/compute/direct.h"
#include "fixtures.h"
#include "turns.h"

static const struct {
    const char *name;
    lr_direct_variant variant;
    lr_direct_storage storage;
} ways[] = {
    {"bands", LR_DIRECT_BANDS, LR_DIRECT_BUFFERS},
    {"columns", LR_DIRECT_COLUMNS, LR_DIRECT_BUFFERS},
    {"threads", LR_DIRECT_THREADS, LR_DIRECT_TEXTURES},
    {"threads, buffers", LR_DIRECT_THREADS, LR_DIRECT_BUFFERS},
    {"instructions", LR_DIRECT_INSTRUCTIONS, LR_DIRECT_TEXTURES},
    {"instructions, buffers", LR_DIRECT_INSTRUCTIONS, LR_DIRECT_BUFFERS},
    {"shared memory", LR_DIRECT_SHARED_MEMORY, LR_DIRECT_TEXTURES},
    {"texture cache", LR_DIRECT_TEXTURE_CACHE, LR_DIRECT_TEXTURES},
};
enum { NUM_WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Keeps the last warning, too. */
struct heard {
    lr_log log;
    char warning[512], error[512];
};

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct heard *heard = user;
    (void)status;
    if (level == LR_LOG_WARNING || level == LR_LOG_ERROR) {
        char *text = level == LR_LOG_WARNING ? heard->warning : heard->error;
        snprintf(text, sizeof(heard->warning), "%s", sentence);
    }
}

static struct heard heard = {.log = {hear, &heard}};

static int64_t max_memory_bytes;  /* of tables; 0 = the default */
static const lr_grid *other_grid; /* NULL = case_grid */

static lr_operator *make_views(const char *backend, int way, const lr_view *views, int num_views,
                               const lr_resolution *resolution)
{
    const lr_grid grid = other_grid != NULL ? *other_grid : case_grid();
    heard.warning[0] = heard.error[0] = '\0';
    return lr_direct_create(&(lr_direct_params){.grid = &grid,
                                                .views = views,
                                                .num_views = num_views,
                                                .kernel = {.resolution = *resolution},
                                                .backend = backend,
                                                .storage = ways[way].storage,
                                                .variant = ways[way].variant,
                                                .max_memory_bytes = max_memory_bytes,
                                                .log = &heard.log});
}

static lr_operator *make(const char *backend, int way, const lr_view *view, const lr_resolution *resolution)
{
    return make_views(backend, way, view, 1, resolution);
}

static bool has_cuda(void)
{
    const lr_resolution resolution = case_resolution(0);
    lr_operator *direct = make("cuda", 0, &case_views[0], &resolution);
    assert_non_null(direct);
    const bool found = strcmp(lr_operator_get_info(direct)->backend, "cuda") == 0;
    lr_operator_destroy(direct);
    return found;
}

static void without_cuda_compute_does_it_and_says_so(void **state)
{
    if (has_cuda()) {
        print_message("skipped: there is a CUDA device\n");
        skip();
    }
    assert_int_equal(heard.error[0], '\0');
    assert_non_null(strstr(heard.warning, "no CUDA: "));
    assert_non_null(strstr(heard.warning, "backend compute does it instead"));
}

static double difference(const float *a, const float *b, int64_t count)
{
    double square = 0, norm = 0;
    for (int64_t k = 0; k < count; k++) {
        square += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        norm += (double)b[k] * (double)b[k];
    }
    return sqrt(square / norm);
}

static const char *only; /* NULL = every variant */

static bool is_wanted(int way)
{
    return only == NULL || strcmp(only, ways[way].name) == 0;
}

/* Builds without CUDA have compute do it either way, and check it once. */
static int num_ways(void)
{
    return has_cuda() ? NUM_WAYS : 1;
}

static double worst;

static void check(int way, const lr_view *view, const lr_resolution *resolution)
{
    uint64_t seed = 3;
    lr_operator *cuda = make("cuda", way, view, resolution);
    lr_operator *cpu = make("cpu", way, view, resolution);
    assert_non_null(cuda);
    const int64_t count = lr_operator_get_info(cpu)->num_voxels;
    float *image = calloc((size_t)count, 4), *found = calloc((size_t)count, 4);
    float *expected = calloc((size_t)count, 4);
    for (int64_t k = 0; k < count; k++) image[k] = (float)test_random(&seed);
    assert_int_equal(view_floats(cuda, true, 0, image, found), LR_OK);
    assert_int_equal(view_floats(cpu, true, 0, image, expected), LR_OK);
    worst = fmax(worst, difference(found, expected, count));
    assert_int_equal(view_floats(cuda, false, 0, image, found), LR_OK);
    assert_int_equal(view_floats(cpu, false, 0, image, expected), LR_OK);
    worst = fmax(worst, difference(found, expected, count));
    assert_true(lr_operator_device_seconds(cuda) > 0);
    free(expected);
    free(found);
    free(image);
    lr_operator_destroy(cpu);
    lr_operator_destroy(cuda);
}

/* Threads of 24, 16 and 8 slices, several of them above each other, and a patient's size. */
static void check_lengths(int way)
{
    const lr_grid grids[] = {
        lr_grid_centred((const int[3]){37, 30, 62}, (const double[3]){4, 4, 4}),
        lr_grid_centred((const int[3]){35, 53, 41}, (const double[3]){4, 4, 4}),
        lr_grid_centred((const int[3]){31, 37, 30}, (const double[3]){4, 4, 4}),
        lr_grid_centred((const int[3]){144, 144, 109}, (const double[3]){4, 4, 4}),
    };
    static const lr_view views[] = {{71, 9}, {160, 0}, {27, -10}, {36, 10}};
    const lr_resolution resolution = case_resolution(2);
    worst = 0;
    for (int k = 0; k < 4; k++) {
        other_grid = &grids[k];
        check(way, &views[k], &resolution);
        other_grid = NULL;
    }
    print_message("%s: largest difference %.2e\n", ways[way].name, worst);
    assert_true(worst < 1e-6);
}

static void skip_without_cuda(void)
{
    if (!has_cuda()) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
}

static void every_variant_projects_as_the_reference(void **state)
{
    skip_without_cuda();
    for (int way = 0; way < NUM_WAYS; way++) {
        if (!is_wanted(way)) continue;
        worst = 0;
        for (int model = 0; model < NUM_MODELS; model++) {
            const lr_resolution resolution = case_resolution(model);
            for (int k = 0; k < NUM_ANGLES; k++) check(way, &case_views[k], &resolution);
        }
        print_message("%s: largest difference %.2e\n", ways[way].name, worst);
        assert_true(worst < 1e-6); /* the issue asks for 1e-5 */
    }
}

static void images_have_any_length(void **state)
{
    skip_without_cuda();
    for (int way = 0; way < NUM_WAYS; way++)
        if (is_wanted(way)) check_lengths(way);
}

static void check_turns(int way, const struct turns *turns)
{
    const lr_resolution resolution = case_resolution(2);
    lr_operator *cuda = make_views("cuda", way, case_views, TURN_VIEWS, &resolution);
    lr_operator *cpu = make_views("cpu", way, case_views, TURN_VIEWS, &resolution);
    struct pair pair;
    pair_init(&pair, cuda, cpu);
    take_turns(&pair, turns);
    worst = fmax(worst, pair.worst);
    pair_finish(&pair);
    lr_operator_destroy(cpu);
    lr_operator_destroy(cuda);
    if (heard.error[0] != '\0') fail_msg("%s", heard.error);
}

/* Several blocks, images read, data loaded and projections in between. Without CUDA compute does
 * it, and is checked. */
static void opengl_and_cuda_take_turns(void **state)
{
    for (int way = 0; way < num_ways(); way++) {
        if (!is_wanted(way)) continue;
        worst = 0;
        for (int k = 0; k < NUM_TURNS; k++) check_turns(way, &all_turns[k]);
        print_message("%s: largest difference after updates %.2e\n", ways[way].name, worst);
        assert_true(worst < 1e-5);
    }
}

/* Tables of one view at a time, made anew whenever another one is wanted. */
static void tables_need_not_be_kept(void **state)
{
    worst = 0;
    max_memory_bytes = 1;
    check_turns(0, &all_turns[1]);
    max_memory_bytes = 0;
    print_message("largest difference %.2e\n", worst);
    assert_true(worst < 1e-5);
}

/* Runs a batch of one view, over and over, so that all write the same; found: what it leaves behind. */
static void run_batch(lr_operator *direct, lr_direct_work work, int view, const float *source, float *found)
{
    enum { MOST_TIMES = 11, FEW_TIMES = 5 }; /* more than views that are sorted at a time */
    int views[MOST_TIMES];
    const int times = only != NULL ? FEW_TIMES : MOST_TIMES;
    double seconds;
    struct lr_direct_compute *compute = direct->backend.self;
    for (int k = 0; k < times; k++) views[k] = view;
    assert_int_equal(gl_context_make_current(compute->ctx), LR_OK);
    assert_int_equal(lr_direct_put(compute, &compute->in, source), LR_OK);
    compute->is_unordered = true;
    assert_int_equal(
        lr_direct_run_task(compute, &(lr_direct_task){work, views, times, NULL}, &compute->in, &compute->out, &seconds),
        LR_OK);
    compute->is_unordered = false;
    assert_int_equal(lr_direct_fetch(compute, &compute->out, found), LR_OK);
    gl_context_release(compute->ctx);
}

/* One after the other along other lattices, in the same room. */
static void check_batches(int way, int model)
{
    const lr_resolution resolution = case_resolution(model);
    struct pair pair;
    pair_init(&pair, make_views("cuda", way, case_views, NUM_ANGLES, &resolution),
              make_views("cpu", way, case_views, NUM_ANGLES, &resolution));
    const int rounds = only != NULL ? 1 : 2;
    for (int k = 0; k < rounds * NUM_ANGLES; k++) {
        const int view = k % NUM_ANGLES;
        run_batch(pair.tested, LR_DIRECT_WORK_FORWARD, view, pair.source, pair.found);
        assert_int_equal(view_floats(pair.reference, true, view, pair.source, pair.expected), LR_OK);
        pair_compare(&pair);
        run_batch(pair.tested, LR_DIRECT_WORK_BACK, view, pair.source, pair.found);
        assert_int_equal(view_floats(pair.reference, false, view, pair.source, pair.expected), LR_OK);
        pair_compare(&pair);
    }
    worst = fmax(worst, pair.worst);
    lr_operator_destroy(pair.reference);
    lr_operator_destroy(pair.tested);
    pair_finish(&pair);
}

/* Passes beside each other have blocks of another shape. */
static void batches_project_as_the_reference(void **state)
{
    const lr_grid grids[] = {
        lr_grid_centred((const int[3]){40, 38, 44}, (const double[3]){4, 4, 4}),
        lr_grid_centred((const int[3]){45, 42, 60}, (const double[3]){4, 4, 4}),
    };
    skip_without_cuda();
    for (int way = 0; way < NUM_WAYS; way++) {
        if (!is_wanted(way)) continue;
        worst = 0;
        for (int model = 0; model < NUM_MODELS; model += only != NULL ? 3 : 1) check_batches(way, model);
        for (int k = 0; k < 2; k++) {
            other_grid = &grids[k];
            check_batches(way, 0);
            check_batches(way, 2);
            other_grid = NULL;
        }
        print_message("%s: largest difference of batches %.2e\n", ways[way].name, worst);
        assert_true(worst < 1e-6);
    }
}

static void time_views(const struct pair *pair, lr_direct_work work, int num_views)
{
    static const int views[NUM_ANGLES] = {0, 1, 2, 3, 4, 5, 6, 7};
    lr_direct_timing timing;
    const lr_vector x = lr_vector_of_floats(pair->source, pair->count);
    assert_int_equal(lr_direct_time(pair->tested, &(lr_direct_task){work, views, num_views, &x}, &timing), LR_OK);
    assert_true(timing.device_s > 0);
}

/* Tables of a task's views and of one alone, projections of all views at a time before and after. */
static void check_tables(int way, int model)
{
    const lr_resolution resolution = case_resolution(model);
    struct pair pair;
    pair_init(&pair, make_views("cuda", way, case_views, NUM_ANGLES, &resolution),
              make_views("cpu", way, case_views, NUM_ANGLES, &resolution));
    time_views(&pair, LR_DIRECT_WORK_FORWARD, NUM_ANGLES);
    pair_compare_projections(&pair, 5);
    time_views(&pair, LR_DIRECT_WORK_TABLES, NUM_ANGLES);
    time_views(&pair, LR_DIRECT_WORK_BACK, NUM_ANGLES);
    time_views(&pair, LR_DIRECT_WORK_TABLES, 1);
    time_views(&pair, LR_DIRECT_WORK_TABLES, 3);
    for (int view = 0; view < NUM_ANGLES; view++) pair_compare_projections(&pair, view);
    worst = fmax(worst, pair.worst);
    lr_operator_destroy(pair.reference);
    lr_operator_destroy(pair.tested);
    pair_finish(&pair);
    if (heard.error[0] != '\0') fail_msg("%s", heard.error);
}

/* Room for all views, for some at a time, and for none: groups are cut, and views forgotten while those
 * of the same task go on. */
static void tables_are_made_many_at_a_time(void **state)
{
    static const int64_t rooms[] = {0, 1, 100 << 10, 300 << 10, 1 << 20};
    for (int way = 0; way < num_ways(); way++) {
        if (!is_wanted(way)) continue;
        worst = 0;
        for (int k = 0; k < 5; k++) {
            max_memory_bytes = rooms[k];
            check_tables(way, 0);
            check_tables(way, 2 + k % 4);
        }
        max_memory_bytes = 0;
        print_message("%s: largest difference %.2e\n", ways[way].name, worst);
        assert_true(worst < 1e-6);
    }
}

static void read_after_iterations(lr_operator *op, const struct turns *turns, bool reads, float *image)
{
    struct pair pair;
    pair_init(&pair, op, op);
    pair_open(&pair, turns);
    pair_set_image(&pair, pair.source);
    for (int pass = 0; pass < 3; pass++) {
        for (int number = 0; number < turns_blocks(turns); number++) {
            turns_update(&pair, turns, number);
            if (reads) pair_get_image(&pair, image);
        }
    }
    memset(image, 0, (size_t)pair.count * sizeof(*image));
    pair_get_image(&pair, image);
    pair_finish(&pair);
}

/* Iterations that nobody waits for, bit for bit those that are looked at after every block. */
static void nobody_needs_to_look(void **state)
{
    const lr_resolution resolution = case_resolution(2);
    for (int way = 0; way < num_ways(); way++) {
        if (!is_wanted(way)) continue;
        lr_operator *cuda = make_views("cuda", way, case_views, TURN_VIEWS, &resolution);
        const size_t bytes = (size_t)lr_operator_get_info(cuda)->num_voxels * sizeof(float);
        float *found = malloc(bytes), *expected = malloc(bytes);
        for (int k = 0; k < NUM_TURNS; k++) {
            read_after_iterations(cuda, &all_turns[k], false, found);
            read_after_iterations(cuda, &all_turns[k], true, expected);
            assert_memory_equal(found, expected, bytes);
        }
        free(expected);
        free(found);
        lr_operator_destroy(cuda);
    }
}

static void what_a_variant_cannot_do_is_refused(void **state)
{
    skip_without_cuda();
    const lr_grid grid = case_grid();
    const lr_resolution resolution = case_resolution(0);
    assert_null(lr_direct_create(&(lr_direct_params){.grid = &grid,
                                                     .views = case_views,
                                                     .num_views = 1,
                                                     .kernel = {.resolution = resolution},
                                                     .backend = "cuda",
                                                     .variant = LR_DIRECT_BANDS,
                                                     .storage = LR_DIRECT_TEXTURES,
                                                     .log = &heard.log}));
    assert_non_null(strstr(heard.error, "work on buffers"));
}

static bool is_way(const char *name)
{
    for (int way = 0; way < NUM_WAYS; way++)
        if (strcmp(name, ways[way].name) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    if (only != NULL && !is_way(only)) {
        fprintf(stderr, "%s: no variant has this name\n", only);
        return 2;
    }
    if (!fixture_backend_is_usable("compute")) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_cuda_compute_does_it_and_says_so),
        cmocka_unit_test(every_variant_projects_as_the_reference),
        cmocka_unit_test(images_have_any_length),
        cmocka_unit_test(batches_project_as_the_reference),
        cmocka_unit_test(opengl_and_cuda_take_turns),
        cmocka_unit_test(tables_need_not_be_kept),
        cmocka_unit_test(tables_are_made_many_at_a_time),
        cmocka_unit_test(nobody_needs_to_look),
        cmocka_unit_test(what_a_variant_cannot_do_is_refused),
    };
    if (only != NULL) cmocka_set_skip_filter("nobody_needs_to_look");
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
