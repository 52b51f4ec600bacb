/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parts add up, on every preset's arrangement of modules. LORs are partitioned by module pairs, by single LORs and by
 * the subsets of OSEM. A backend's results for the parts (forward, back and sensitivity) add up to its result for all
 * LORs, for any size of windows and batches, and the result for all LORs equals that of the backend cpu. Images that
 * stay on the device are projected part by part as well. Reconstructions by OSEM with 1, 4 and 7 subsets give cpu's
 * image and leave out no counts.
 *
 * Argument: the backend. Modules keep their outlines and have at most LORASTER_TEST_CRYSTALS crystals along each edge
 * (0: no limit; by default so few that the scanner has 150,000 LORs). With LORASTER_FULL all presets are tested with
 * every grid and with the device's own batches, else a few presets with one grid each. LORASTER_TEST_PRESETS: names
 * of presets, separated by commas, or "all". */
#include "batches.h"
#include "fixtures.h"
#include "operator/updates.h"

enum {
    SPLIT_PAIRS = 0,
    SPLIT_FOUR,
    SPLIT_SEVEN,
    SPLIT_ANGLES,
    SPLIT_LORS,
    NUM_SPLITS,
    NUM_GRIDS = 3,
    MOST_LORS = 150000
};

/* Largest difference of two sums of the same numbers in another order, relative to the largest sum. Atomics of a
 * forward projection add in any order. */
static const double same_sum = 3e-6;

/* Largest relative L2 difference from cpu, for all LORs. Exact elements are accurate to 1e-5. In sampled mode, many
 * lines run along an edge between two crystals if the grid has the scanner's symmetries, and rounding decides which
 * of two LORs gets such a line. Back-projections of ones do not depend on this choice. */
static const double from_cpu[] = {[LR_MODE_SAMPLED] = 5e-3, [LR_MODE_EXACT] = 2e-5};

/* Largest relative difference from `native`, which also computes in float. It is tested in sampled mode if the
 * result differs from that of cpu, because a line along the rim of a module can hit the module in double precision and
 * miss it in float, or the reverse. */
static const double from_native = 2e-5;

struct made {
    const char *backend;
    const char *name;    /* of the preset */
    const char *batches; /* of LR_TEST_BATCHES */
    lr_mode mode;
    int64_t memory; /* max_memory_bytes */
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    int64_t num_voxels;
    lr_operator *op;
    uint64_t random;
    float *image, *data;          /* what is projected */
    float *whole, *back, *sensed; /* A image, A^T data, A^T 1 of the whole */
    int32_t *part_of;             /* [num_pairs] or [count]: part of each pair, or LOR */
    const char *what;             /* being checked, for messages */
};

/* --- scanners --- */

static int number_from(const char *variable, int usual)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : usual;
}

/* A module of the same outline with fewer crystals. */
static lr_module coarse_module(const lr_module *from, int most)
{
    lr_module module = *from;
    for (int axis = 0; axis < 2; axis++) {
        const int count = from->crystals[axis];
        const int fewer = most > 0 && most < count ? most : count;
        const double times = (double)count / fewer;
        module.crystals[axis] = fewer;
        module.pitch_mm[axis] *= times;
        module.face_mm[axis] *= times;
    }
    module.first_crystal_ring = from->first_crystal_ring * module.crystals[1] / from->crystals[1];
    return module;
}

static lr_scanner *coarse_scanner(const char *name, int most)
{
    struct test_log log;
    test_log_init(&log);
    lr_scanner *fine = lr_scanner_read(name, &log.log);
    if (fine == NULL) fail_msg("%s: %s", name, log.error);
    lr_module *modules = calloc((size_t)fine->num_modules, sizeof(*modules));
    assert_non_null(modules);
    for (int m = 0; m < fine->num_modules; m++) modules[m] = coarse_module(&fine->modules[m], most);
    lr_scanner_params params = {.name = name,
                                .modules = modules,
                                .num_modules = fine->num_modules,
                                .num_positions = fine->num_positions,
                                .coincidence = fine->coincidence,
                                .detection_depth_mm = fine->detection_depth_mm,
                                .log = &log.log};
    params.coincidence.max_ring_difference =
        fine->coincidence.max_ring_difference * modules[0].crystals[1] / fine->modules[0].crystals[1];
    lr_scanner *scanner = lr_scanner_create(&params);
    if (scanner == NULL) fail_msg("%s: %s", name, log.error);
    free(modules);
    lr_scanner_destroy(fine);
    return scanner;
}

/* Few enough LORs for a processor, where nothing else is asked for. */
static void make_scanner(struct made *made)
{
    const int asked = number_from("LORASTER_TEST_CRYSTALS", -1);
    for (int most = asked >= 0 ? asked : 3; made->lors == NULL; most--) {
        made->scanner = coarse_scanner(made->name, most);
        made->lors = lr_lors_create(made->scanner, NULL);
        assert_non_null(made->lors);
        if (asked < 0 && most > 1 && made->lors->count > MOST_LORS) {
            lr_lors_destroy(made->lors);
            lr_scanner_destroy(made->scanner);
            made->lors = NULL;
        }
    }
}

/* Distance of the nearest module from the axis. If there are only two flat modules, it is half the distance between
 * them. */
static double radius_mm(const lr_scanner *scanner)
{
    double nearest = INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *c = scanner->modules[m].centre_mm;
        nearest = fmin(nearest, hypot(c[0], c[1]));
    }
    return nearest;
}

/* The grids: 3 x 3 x 3 in the middle, which has every symmetry that there is; odd numbers; and one
 * that lies askew of all symmetries. */
static lr_grid make_grid(const lr_scanner *scanner, int which)
{
    static const int sizes[NUM_GRIDS][3] = {{3, 3, 3}, {5, 3, 1}, {4, 3, 5}};
    const double edge = radius_mm(scanner) / 9.0;
    lr_grid grid = lr_grid_centred(sizes[which], (double[]){edge, edge, 0.5 * edge});
    if (which == 2) {
        grid.origin_mm[0] += 0.31 * edge;
        grid.origin_mm[1] -= 0.17 * edge;
        grid.origin_mm[2] += 0.23 * edge;
    }
    return grid;
}

/* --- values --- */

static float *floats(int64_t count)
{
    float *values = calloc((size_t)count + 1, sizeof(*values));
    assert_non_null(values);
    return values;
}

static float *random_floats(struct made *made, int64_t count)
{
    float *values = floats(count);
    for (int64_t k = 0; k < count; k++) values[k] = (float)(0.25 + test_random(&made->random));
    return values;
}

static void assert_same(const struct made *made, const float *a, const float *b, int64_t count)
{
    double largest = 0.0, worst = 0.0;
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        const double gap = fabs((double)a[k] - (double)b[k]);
        largest = fmax(largest, fabs((double)b[k]));
        at = !(gap <= worst) ? k : at;
        worst = !(gap <= worst) ? gap : worst;
    }
    if (!(worst <= same_sum * largest)) {
        fail_msg("%s, %s, mode %d, batches %s, %lld bytes: %s: value %lld of %lld is %.9g in parts "
                 "and %.9g as a whole, the largest %.9g",
                 made->name, made->backend, (int)made->mode, made->batches, (long long)made->memory, made->what,
                 (long long)at, (long long)count, (double)a[at], (double)b[at], largest);
    }
}

/* --- parts --- */

static lr_selection take_part(const struct made *made, bool by_lors, int part, void *list)
{
    int64_t count = 0;
    if (by_lors) {
        int64_t *lors = list;
        for (int64_t k = 0; k < made->lors->count; k++)
            if (made->part_of[k] == part) lors[count++] = k;
        return (lr_selection){.lors = lors, .num_lors = count};
    }
    int32_t *pairs = list;
    for (int64_t k = 0; k < made->lors->num_pairs; k++)
        if (made->part_of[k] == part) pairs[count++] = (int32_t)k;
    return (lr_selection){.pairs = pairs, .num_pairs = count};
}

/* The values of a part among those of all LORs; or back there. */
static void pick(const struct made *made, const lr_selection *part, const float *all, float *values)
{
    for (int64_t k = 0; k < part->num_lors; k++) values[k] = all[part->lors[k]];
    for (int64_t k = 0; k < part->num_pairs; k++) {
        const int64_t *offset = &made->lors->offsets[part->pairs[k]];
        memcpy(values, all + offset[0], (size_t)(offset[1] - offset[0]) * sizeof(*values));
        values += offset[1] - offset[0];
    }
    lr_selection_blank(made->lors, part, values - lr_selection_count(made->lors, part));
}

static void add(float *sum, const float *image, int64_t count)
{
    for (int64_t v = 0; v < count; v++) sum[v] += image[v];
}

/* Sums over the parts that have been projected so far. */
struct sums {
    float *back, *sensed; /* [num_voxels] */
    float *values, *wanted, *image;
    void *list;
};

static lr_vector make_there(const struct made *made, int64_t count)
{
    lr_vector vector;
    const lr_vector_params params = {.place = lr_operator_place(made->op), .count = count};
    assert_int_equal(lr_vector_create(&params, &vector), LR_OK);
    assert_int_equal(lr_vector_fill(&vector, NAN), LR_OK);
    return vector;
}

static void forward_at_place(const struct made *made, const lr_selection *part, float *values)
{
    const lr_vector from = lr_vector_of_floats(made->image, made->num_voxels);
    lr_vector to = lr_vector_of_floats(values, lr_selection_count(made->lors, part));
    lr_vector x = make_there(made, from.count), y = make_there(made, to.count);
    assert_int_equal(lr_vector_copy(&from, &x), LR_OK);
    assert_int_equal(lr_operator_forward(made->op, part, &x, &y), LR_OK);
    assert_int_equal(lr_project_blank(made->op, part, &y), LR_OK);
    assert_int_equal(lr_vector_copy(&y, &to), LR_OK);
    lr_vector_destroy(&x);
    lr_vector_destroy(&y);
}

/* Back-projects values at the operator's place to an image at this place. The result must equal that of host
 * vectors. */
static void back_at_place(const struct made *made, const lr_selection *part, const float *values, float *image)
{
    const lr_vector from = lr_vector_of_floats(values, lr_selection_count(made->lors, part));
    lr_vector to = lr_vector_of_floats(image, made->num_voxels);
    lr_vector y = make_there(made, from.count), x = make_there(made, to.count);
    assert_int_equal(lr_vector_copy(&from, &y), LR_OK);
    assert_int_equal(lr_operator_back(made->op, part, &y, &x), LR_OK);
    assert_int_equal(lr_vector_copy(&x, &to), LR_OK);
    lr_vector_destroy(&x);
    lr_vector_destroy(&y);
}

static void check_part(struct made *made, const lr_selection *part, struct sums *sums)
{
    const int64_t count = lr_selection_count(made->lors, part);
    pick(made, part, made->whole, sums->wanted);
    memset(sums->values, -1, (size_t)count * sizeof(*sums->values)); /* NaN */
    assert_int_equal(array_forward_part(made->op, part, made->image, sums->values), LR_OK);
    lr_selection_blank(made->lors, part, sums->values);
    made->what = "forward";
    assert_same(made, sums->values, sums->wanted, count);
    forward_at_place(made, part, sums->values);
    made->what = "forward at the operator's place, with its other LORs blanked there";
    assert_same(made, sums->values, sums->wanted, count);
    pick(made, part, made->data, sums->values);
    memset(sums->image, -1, (size_t)made->num_voxels * sizeof(*sums->image));
    back_at_place(made, part, sums->values, sums->image);
    add(sums->back, sums->image, made->num_voxels);
    memset(sums->image, -1, (size_t)made->num_voxels * sizeof(*sums->image));
    assert_int_equal(array_sensitivity_part(made->op, part, sums->image), LR_OK);
    add(sums->sensed, sums->image, made->num_voxels);
}

static int divide(struct made *made, int split)
{
    const int parts = split == SPLIT_SEVEN ? 7 : split == SPLIT_FOUR ? 4 : 3;
    if (split == SPLIT_ANGLES) { /* all pairs are in each */
        memset(made->part_of, 0, (size_t)made->lors->num_pairs * sizeof(*made->part_of));
        return parts;
    }
    const int64_t count = split == SPLIT_LORS ? made->lors->count : made->lors->num_pairs;
    if (split == SPLIT_FOUR || split == SPLIT_SEVEN) {
        const int fit = parts < made->lors->num_pairs ? parts : (int)made->lors->num_pairs;
        assert_int_equal(lr_osem_subsets(made->lors, fit, made->part_of, NULL), LR_OK);
        return fit;
    }
    for (int64_t k = 0; k < count; k++) made->part_of[k] = (int32_t)(parts * test_random(&made->random));
    return parts;
}

static void check_split(struct made *made, int split)
{
    const int64_t count = made->lors->count;
    const size_t largest = split == SPLIT_LORS ? sizeof(int64_t) : sizeof(int32_t);
    struct sums sums = {.back = floats(made->num_voxels),
                        .sensed = floats(made->num_voxels),
                        .values = floats(count),
                        .wanted = floats(count),
                        .image = floats(made->num_voxels),
                        .list = calloc((size_t)count, largest)};
    assert_non_null(sums.list);
    const int parts = divide(made, split);
    for (int part = 0; part < parts; part++) {
        const bool by_angles = split == SPLIT_ANGLES;
        lr_selection selection = take_part(made, split == SPLIT_LORS, by_angles ? 0 : part, sums.list);
        selection.interleave = by_angles ? parts : 0;
        selection.interleave_turn = by_angles ? part : 0;
        check_part(made, &selection, &sums);
    }
    made->what = "back";
    assert_same(made, sums.back, made->back, made->num_voxels);
    made->what = "sensitivity";
    assert_same(made, sums.sensed, made->sensed, made->num_voxels);
    float *owned[] = {sums.back, sums.sensed, sums.values, sums.wanted, sums.image};
    for (int k = 0; k < 5; k++) free(owned[k]);
    free(sums.list);
}

/* --- the whole --- */

static lr_operator *create(const struct made *made, const char *backend, struct test_log *log)
{
    test_log_init(log);
    const lr_operator_params params = {.lors = made->lors,
                                       .grid = &made->grid,
                                       .backend = backend,
                                       .mode = made->mode,
                                       .rays = 2,
                                       .samples = {1, 1, 1},
                                       .store = LR_STORE_NO,
                                       .max_memory_bytes = made->memory,
                                       .threads = 2,
                                       .log = &log->log};
    setenv("LR_TEST_BATCHES", made->batches, 1);
    lr_operator *op = lr_operator_create(&params);
    unsetenv("LR_TEST_BATCHES");
    return op;
}

/* Relative L2 from another backend: forward, or in sampled mode the sensitivity. */
static double distance_from(const struct made *made, const char *backend)
{
    struct test_log log;
    struct made plain = *made;
    plain.memory = 0;
    lr_operator *op = create(&plain, backend, &log);
    assert_non_null(op);
    const bool exact = made->mode == LR_MODE_EXACT;
    const int64_t count = exact ? made->lors->count : made->num_voxels;
    const float *found = exact ? made->whole : made->sensed;
    float *expected = floats(count);
    assert_int_equal(exact ? array_forward(op, made->image, expected) : array_sensitivity(op, expected), LR_OK);
    double gap = 0.0, norm = 0.0;
    for (int64_t k = 0; k < count; k++) {
        const double difference = (double)found[k] - (double)expected[k];
        gap += difference * difference;
        norm += (double)expected[k] * expected[k];
    }
    assert_true(norm > 0.0);
    free(expected);
    lr_operator_destroy(op);
    return sqrt(gap / norm);
}

static void check_against_others(const struct made *made)
{
    const double gap = distance_from(made, "cpu");
    const bool is_sampled = made->mode == LR_MODE_SAMPLED;
    if (!(gap <= from_cpu[made->mode]) && !(is_sampled && distance_from(made, "native") <= from_native)) {
        fail_msg("%s, %s, mode %d, batches %s: it is %.3g from cpu's", made->name, made->backend, (int)made->mode,
                 made->batches, gap);
    }
}

static void project_whole(struct made *made)
{
    made->random = test_seed();
    made->num_voxels = lr_grid_num_voxels(&made->grid);
    made->image = random_floats(made, made->num_voxels);
    made->data = random_floats(made, made->lors->count);
    made->whole = floats(made->lors->count);
    made->back = floats(made->num_voxels);
    made->sensed = floats(made->num_voxels);
    made->part_of = calloc((size_t)made->lors->count, sizeof(*made->part_of));
    assert_non_null(made->part_of);
    assert_int_equal(array_forward(made->op, made->image, made->whole), LR_OK);
    assert_int_equal(array_back(made->op, made->data, made->back), LR_OK);
    assert_int_equal(array_sensitivity(made->op, made->sensed), LR_OK);
}

static void check_parts(struct made *made)
{
    struct test_log log;
    made->op = create(made, made->backend, &log);
    if (made->op == NULL && log.status == LR_USAGE && made->mode == LR_MODE_EXACT) {
        print_message("%s: %s\n", made->name, log.error); /* raster has no exact mode */
        return;
    }
    if (made->op == NULL) fail_msg("%s, %s: %s", made->name, made->backend, log.error);
    project_whole(made);
    check_against_others(made);
    for (int split = 0; split < NUM_SPLITS; split++) check_split(made, split);
    float *owned[] = {made->image, made->data, made->whole, made->back, made->sensed};
    for (int k = 0; k < 5; k++) free(owned[k]);
    free(made->part_of);
    lr_operator_destroy(made->op);
}

/* --- windows --- */

/* Device memory for about a fifth of the LORs, and for any pair of stacks of modules. */
static int64_t little_memory(const lr_lors *lors)
{
    int64_t largest = 0;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const int64_t size = lors->offsets[k + 1] - lors->offsets[k];
        largest = size > largest ? size : largest;
    }
    const int64_t fifth = lors->count / 5;
    return (int64_t)sizeof(float) * (fifth > 4 * largest ? fifth : 4 * largest);
}

static bool is_full(void)
{
    return number_from("LORASTER_FULL", 0) > 0;
}

static void check_windows(struct made *made)
{
    static const char *const batches[] = {"large", "small", "own"};
    const bool on_device = strcmp(made->backend, "cpu") != 0;
    const int count = !on_device ? 1 : is_full() ? 3 : 2;
    for (int k = 0; k < count; k++) {
        made->batches = batches[k];
        made->memory = k == 1 ? little_memory(made->lors) : 0;
        check_parts(made);
    }
}

/* Usually those with few and many modules, with gaps, and with modules that are each other's images
 * in stacks of a subset and outside of it. */
static bool is_asked_for(const char *name)
{
    const char *names = getenv("LORASTER_TEST_PRESETS");
    if (names == NULL) names = is_full() ? "all" : "ge-explore-vista-dr,safir-dual-ring-prototype,penn-labr3";
    return strcmp(names, "all") == 0 || strstr(names, name) != NULL;
}

static void check_preset(const char *backend, const char *name, int which)
{
    const bool full = is_full();
    struct made made = {.backend = backend, .name = name};
    make_scanner(&made);
    for (int grid = 0; grid < NUM_GRIDS; grid++) {
        if (full || grid == which % NUM_GRIDS || grid == 0) {
            made.grid = make_grid(made.scanner, grid);
            for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
                made.mode = (lr_mode)mode;
                check_windows(&made);
            }
        }
    }
    print_message("%s: %lld LORs\n", name, (long long)made.lors->count);
    lr_lors_destroy(made.lors);
    lr_scanner_destroy(made.scanner);
}

static void parts_add_up_on_every_preset(void **state)
{
    int which = 0, checked = 0;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++, which++) {
        if (is_asked_for(*name)) {
            check_preset(*state, *name, which);
            checked++;
        }
    }
    assert_true(checked > 0);
}

/* --- reconstructions --- */

/* Relative L2 of images. */
static const double same_image = 1e-4;

static lr_status check_left_out(void *user, const lr_iteration *done)
{
    (void)user;
    assert_true(done->measured_counts > 0.0);
    assert_true(done->left_out_counts <= 1e-3 * done->measured_counts);
    return LR_OK;
}

static float *reconstruct(struct made *made, const char *backend, int subsets, const lr_lor_data *data)
{
    struct test_log log;
    lr_operator *op = create(made, backend, &log);
    if (op == NULL) fail_msg("%s, %s: %s", made->name, backend, log.error);
    float *image = floats(made->num_voxels);
    const lr_vector counts = lr_lor_data_vector(data);
    const lr_osem_params params = {.op = op,
                                   .data = &counts,
                                   .data_lors = data->index,
                                   .subsets = subsets,
                                   .iterations = 2,
                                   .iteration = check_left_out,
                                   .log = &log.log};
    if (array_osem(&params, image) != LR_OK)
        fail_msg("%s, %s, %d subsets: %s", made->name, backend, subsets, log.error);
    lr_operator_destroy(op);
    return image;
}

/* Data are cpu's, of an image with values from 0.25 to 1.25. */
static lr_lor_data *measure(struct made *made)
{
    struct test_log log;
    lr_lor_data *data = lr_lor_data_create(made->lors, NULL);
    lr_operator *cpu = create(made, "cpu", &log);
    assert_true(data != NULL && cpu != NULL);
    float *image = random_floats(made, made->num_voxels);
    assert_int_equal(array_forward(cpu, image, data->values), LR_OK);
    free(image);
    lr_operator_destroy(cpu);
    return data;
}

static void check_image(struct made *made, int subsets, const lr_lor_data *data)
{
    float *expected = reconstruct(made, "cpu", subsets, data);
    float *found = reconstruct(made, made->backend, subsets, data);
    double gap = 0.0, norm = 0.0;
    for (int64_t v = 0; v < made->num_voxels; v++) {
        const double difference = (double)found[v] - (double)expected[v];
        gap += difference * difference;
        norm += (double)expected[v] * expected[v];
    }
    if (!(sqrt(gap / norm) <= same_image)) {
        fail_msg("%s, %s, mode %d, batches %s, %d subsets: the image is %.3g from cpu's", made->name, made->backend,
                 (int)made->mode, made->batches, subsets, sqrt(gap / norm));
    }
    free(expected);
    free(found);
}

static void check_subsets(struct made *made)
{
    static const int subsets[] = {1, 4, 7};
    made->random = test_seed();
    made->num_voxels = lr_grid_num_voxels(&made->grid);
    lr_lor_data *data = measure(made);
    for (int k = 0; k < 3 && subsets[k] <= made->lors->num_pairs; k++) check_image(made, subsets[k], data);
    lr_lor_data_destroy(data);
}

static void subsets_give_the_image_of_cpu(void **state)
{
    const bool sampled = strcmp(*state, "raster") == 0;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        if (!is_asked_for(*name)) continue;
        struct made made = {
            .backend = *state, .name = *name, .batches = "large", .mode = sampled ? LR_MODE_SAMPLED : LR_MODE_EXACT};
        make_scanner(&made);
        made.grid = make_grid(made.scanner, sampled ? 2 : 0);
        check_subsets(&made);
        lr_lors_destroy(made.lors);
        lr_scanner_destroy(made.scanner);
    }
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    if (!fixture_backend_is_usable(backend)) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(parts_add_up_on_every_preset, (void *)(uintptr_t)backend),
        cmocka_unit_test_prestate(subsets_give_the_image_of_cpu, (void *)(uintptr_t)backend)};
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
