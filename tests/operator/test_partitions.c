/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parts add up, for the arrangement of modules of every preset. LORs are divided by module pairs, by single LORs and by
 * the subsets of OSEM. A backend's results for the parts (forward, back and sensitivity) add up to its result for all
 * LORs, for any size of windows and batches, and the result for all LORs equals that of the backend cpu. Images that
 * stay on the device are projected in parts as well. Reconstructions by OSEM with 1, 4 and 7 subsets give the image of
 * cpu and use all counts. Argument: the backend. Modules keep their outlines and have at most LORASTER_TEST_CRYSTALS
 * crystals along each edge (0: no limit; by default so few that the scanner has 30,000 LORs, or 150,000 with
 * LORASTER_FULL). With LORASTER_FULL all presets are tested with every grid and with the device's own batches, otherwise
 * a few presets with one grid each.
 * LORASTER_TEST_PRESETS: names of presets, separated by commas, or "all". */
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
    MOST_LORS = 150000,
    FEW_LORS = 30000
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
    const char *name;    /* of the preset */
    int number;          /* of the preset, plus that of the mode */
    const char *batches; /* value of LR_TEST_BATCHES */
    lr_mode mode;
    int64_t memory; /* max_memory_bytes */
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    int64_t num_voxels;
    lr_operator *op;
    struct test_log *log;
    uint64_t random;
    float *image, *data;          /* inputs of projections */
    float *whole, *back, *sensed; /* A image, A^T data and A^T 1, for all LORs */
    int32_t *part_of;             /* [num_pairs] or [count]: part of each pair, or of each LOR */
    const char *what;             /* what is being checked, for messages */
};

/* --- scanners --- */

/* Makes few enough LORs for a processor, unless the environment asks for more. */
static void make_scanner(struct made *made)
{
    const char *asked = getenv("LORASTER_TEST_CRYSTALS");
    int most = asked != NULL ? atoi(asked) : 3;
    do {
        /* Modules keep their outlines, but have fewer crystals. */
        const lr_scanner *fine = keep(lr_scanner_read(made->name, NULL));
        lr_module *modules = kept(fine->num_modules, sizeof(*modules));
        for (int m = 0; m < fine->num_modules; m++) {
            const lr_module *from = &fine->modules[m];
            modules[m] = *from;
            for (int axis = 0; axis < 2; axis++) {
                const int count = from->crystals[axis], fewer = most > 0 && most < count ? most : count;
                modules[m].crystals[axis] = fewer;
                modules[m].pitch_mm[axis] *= (double)count / fewer;
                modules[m].face_mm[axis] *= (double)count / fewer;
            }
            modules[m].first_crystal_ring = from->first_crystal_ring * modules[m].crystals[1] / from->crystals[1];
        }
        lr_scanner_params params =
            filled(lr_scanner_params, .name = made->name, .modules = modules, .num_modules = fine->num_modules,
                   .num_positions = fine->num_positions, .coincidence = fine->coincidence,
                   .detection_depth_mm = fine->detection_depth_mm);
        params.coincidence.max_ring_difference =
            fine->coincidence.max_ring_difference * modules[0].crystals[1] / fine->modules[0].crystals[1];
        made->scanner = keep(lr_scanner_create(&params));
        made->lors = keep(lr_lors_create(made->scanner, NULL));
    } while (asked == NULL && most-- > 1 && made->lors->count > (test_is_full() ? MOST_LORS : FEW_LORS));
}

/* The grids: 3 x 3 x 3 voxels in the middle, with every symmetry; one with odd numbers of voxels; and one without any
 * symmetry of the scanner. */
static lr_grid make_grid(const lr_scanner *scanner, int which)
{
    static const int sizes[NUM_GRIDS][3] = {{3, 3, 3}, {5, 3, 1}, {4, 3, 5}};
    double nearest_mm = INFINITY; /* of the modules from the axis; of two flat ones, half their distance */
    for (int m = 0; m < scanner->num_modules; m++)
        nearest_mm = fmin(nearest_mm, hypot(scanner->modules[m].centre_mm[0], scanner->modules[m].centre_mm[1]));
    const double edge = nearest_mm / 9.0;
    lr_grid grid = lr_grid_centred(sizes[which], (double[]){edge, edge, 0.5 * edge});
    for (int k = 0; which == 2 && k < 3; k++) grid.origin_mm[k] += (const double[]){0.31, -0.17, 0.23}[k] * edge;
    return grid;
}

/* --- values --- */

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
        fail_msg("%s, %s, mode %d, batches %s, %lld bytes: %s: value %lld of %lld is %.9g in parts and %.9g as a "
                 "whole, the largest %.9g",
                 made->name, test_backend, (int)made->mode, made->batches, (long long)made->memory, made->what,
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

/* Copies the values of a part from the array of all LORs, or back into it. */
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

/* Sums over the parts that have been projected so far. */
struct sums {
    float *back, *sensed; /* [num_voxels] */
    float *values, *wanted, *image;
    void *list;
};

static lr_vector make_there(const struct made *made, int64_t count)
{
    lr_vector vector = kept_vector(lr_operator_place(made->op), count, LR_FLOAT32);
    assert_ok(lr_vector_fill(&vector, NAN));
    return vector;
}

static void check_part(struct made *made, const lr_selection *part, struct sums *sums)
{
    const int64_t count = lr_selection_count(made->lors, part);
    const int mark = num_kept();
    pick(made, part, made->whole, sums->wanted);
    memset(sums->values, -1, (size_t)count * sizeof(*sums->values)); /* NaN */
    assert_ok(array_forward_part(made->op, part, made->image, sums->values));
    lr_selection_blank(made->lors, part, sums->values);
    made->what = "forward";
    assert_same(made, sums->values, sums->wanted, count);
    const lr_vector image = lr_vector_of_floats(made->image, made->num_voxels);
    lr_vector values = lr_vector_of_floats(sums->values, count), back = lr_vector_of_floats(sums->image, image.count);
    lr_vector x = make_there(made, image.count), y = make_there(made, count);
    assert_ok(lr_vector_copy(&image, &x), lr_operator_forward(made->op, part, &x, &y));
    assert_ok(lr_project_blank(made->op, part, &y), lr_vector_copy(&y, &values));
    made->what = "forward at the operator's place, with its other LORs blanked there";
    assert_same(made, sums->values, sums->wanted, count);
    pick(made, part, made->data, sums->values);
    /* Back-projects values at the operator's place, too; the result must equal that of host vectors. */
    assert_ok(lr_vector_fill(&x, NAN), lr_vector_copy(&values, &y), lr_operator_back(made->op, part, &y, &x));
    assert_ok(lr_vector_copy(&x, &back));
    for (int64_t v = 0; v < back.count; v++) sums->back[v] += sums->image[v];
    assert_ok(lr_vector_fill(&back, NAN), array_sensitivity_part(made->op, part, sums->image));
    for (int64_t v = 0; v < back.count; v++) sums->sensed[v] += sums->image[v];
    destroy_kept_since(mark);
}

static int divide(struct made *made, int split)
{
    const int parts = split == SPLIT_SEVEN ? 7 : split == SPLIT_FOUR ? 4 : 3;
    if (split == SPLIT_ANGLES) { /* every part has all pairs */
        memset(made->part_of, 0, (size_t)made->lors->num_pairs * sizeof(*made->part_of));
        return parts;
    }
    const int64_t count = split == SPLIT_LORS ? made->lors->count : made->lors->num_pairs;
    if (split == SPLIT_FOUR || split == SPLIT_SEVEN) {
        const int fit = parts < made->lors->num_pairs ? parts : (int)made->lors->num_pairs;
        assert_ok(lr_osem_subsets(made->lors, fit, made->part_of, NULL));
        return fit;
    }
    for (int64_t k = 0; k < count; k++) made->part_of[k] = (int32_t)(parts * test_random(&made->random));
    return parts;
}

/* --- the whole --- */

/* NULL if the operator cannot be made; the log has the reason. */
static lr_operator *create(struct made *made, const char *backend)
{
    made->log = kept_log();
    const lr_operator_params params =
        filled(lr_operator_params, .lors = made->lors, .grid = &made->grid, .backend = backend, .mode = made->mode,
               .rays = 2, .samples = {1, 1, 1}, .store = LR_STORE_NO, .max_memory_bytes = made->memory, .threads = 2,
               .log = &made->log->log);
    setenv("LR_TEST_BATCHES", made->batches, 1);
    lr_operator *op = lr_operator_create(&params);
    unsetenv("LR_TEST_BATCHES");
    return op;
}

/* Relative L2 difference from another backend: of the forward projection, or in sampled mode of the sensitivity. */
static double distance_from(const struct made *made, const char *backend)
{
    struct made plain = *made;
    plain.memory = 0;
    lr_operator *op = keep(create(&plain, backend));
    const bool exact = made->mode == LR_MODE_EXACT;
    const int64_t count = exact ? made->lors->count : made->num_voxels;
    float *expected = kept_floats(count);
    assert_ok(exact ? array_forward(op, made->image, expected) : array_sensitivity(op, expected));
    return l2_apart(exact ? made->whole : made->sensed, expected, count);
}

static void check_parts(struct made *made)
{
    made->op = create(made, test_backend);
    if (made->op == NULL && made->log->status == LR_USAGE && made->mode == LR_MODE_EXACT) {
        print_message("%s: %s\n", made->name, made->log->error); /* raster has no exact mode */
        return;
    }
    keep(made->op);
    made->random = test_seed();
    made->num_voxels = lr_grid_num_voxels(&made->grid);
    made->image = kept_random_floats(made->num_voxels, 0.25, 1.25, &made->random);
    made->data = kept_random_floats(made->lors->count, 0.25, 1.25, &made->random);
    made->whole = kept_floats(made->lors->count);
    made->back = kept_floats(made->num_voxels);
    made->sensed = kept_floats(made->num_voxels);
    made->part_of = kept(made->lors->count, sizeof(*made->part_of));
    assert_ok(array_forward(made->op, made->image, made->whole), array_back(made->op, made->data, made->back));
    assert_ok(array_sensitivity(made->op, made->sensed));
    const double gap = distance_from(made, "cpu");
    const bool is_sampled = made->mode == LR_MODE_SAMPLED;
    if (!(gap <= from_cpu[made->mode]) && !(is_sampled && distance_from(made, "native") <= from_native)) {
        fail_msg("%s, %s, mode %d, batches %s: it is %.3g from cpu's", made->name, test_backend, (int)made->mode,
                 made->batches, gap);
    }
    for (int split = 0; split < NUM_SPLITS; split++) {
        /* Without LORASTER_FULL each way to divide LORs meets every second preset in either mode. */
        if (!test_is_full() && (split + made->number) % 2 != 0) continue;
        const int mark = num_kept();
        const int64_t count = made->lors->count;
        const size_t largest = split == SPLIT_LORS ? sizeof(int64_t) : sizeof(int32_t);
        struct sums sums =
            filled(struct sums, .back = kept_floats(made->num_voxels), .sensed = kept_floats(made->num_voxels),
                   .values = kept_floats(count), .wanted = kept_floats(count), .image = kept_floats(made->num_voxels),
                   .list = kept(count, largest));
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
        destroy_kept_since(mark);
    }
}

/* --- windows --- */

/* True for the presets to be tested, usually those with few and with many modules, with gaps, and with modules that are
 * mirror images of each other inside and outside the stacks of a subset. */
static bool is_asked_for(const char *name)
{
    const char *names = getenv("LORASTER_TEST_PRESETS");
    if (names == NULL) names = test_is_full() ? "all" : "ge-explore-vista-dr,safir-dual-ring-prototype,penn-labr3";
    return strcmp(names, "all") == 0 || strstr(names, name) != NULL;
}

static void parts_add_up_on_every_preset(void **state)
{
    int checked = 0;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        if (!is_asked_for(*name)) continue;
        struct made made = {.name = *name};
        make_scanner(&made);
        for (int n = 0; n < 2 * NUM_GRIDS; n++) {
            const int grid = n / 2;
            if (!test_is_full() && grid != checked % NUM_GRIDS) continue;
            made.grid = make_grid(made.scanner, grid);
            made.mode = n % 2 == 0 ? LR_MODE_SAMPLED : LR_MODE_EXACT;
            made.number = checked + n % 2;
            static const char *const batches[] = {"large", "small", "own"};
            const int count = test_backend_is("cpu") ? 1 : test_is_full() ? 3 : 2;
            int64_t largest = 0;
            for (int64_t k = 0; k < made.lors->num_pairs; k++)
                largest = (int64_t)fmax((double)largest, (double)(made.lors->offsets[k + 1] - made.lors->offsets[k]));
            for (int k = 0; k < count; k++) {
                const int mark = num_kept();
                made.batches = batches[k];
                /* Device memory for about a fifth of the LORs, but at least for any pair of stacks of modules. */
                const int64_t room = made.lors->count / 5 > 4 * largest ? made.lors->count / 5 : 4 * largest;
                made.memory = k == 1 ? (int64_t)sizeof(float) * room : 0;
                check_parts(&made);
                destroy_kept_since(mark);
            }
        }
        print_message("%s: %lld LORs\n", *name, (long long)made.lors->count);
        destroy_kept(NULL);
        checked++;
    }
    assert_true(checked > 0);
}

/* --- reconstructions --- */

/* Relative L2 difference of images. */
static const double same_image = 1e-4;

static lr_status check_left_out(void *user, const lr_iteration *done)
{
    assert_all(done->measured_counts > 0.0, done->left_out_counts <= 1e-3 * done->measured_counts);
    return LR_OK;
}

static float *reconstruct(struct made *made, const char *backend, int subsets, const lr_lor_data *data)
{
    lr_operator *op = keep(create(made, backend));
    float *image = kept_floats(made->num_voxels);
    const lr_vector counts = lr_lor_data_vector(data);
    const lr_osem_params params =
        filled(lr_osem_params, .op = op, .data = &counts, .data_lors = data->index, .subsets = subsets, .iterations = 2,
               .iteration = check_left_out, .log = &made->log->log);
    if (array_osem(&params, image) != LR_OK)
        fail_msg("%s, %s, %d subsets: %s", made->name, backend, subsets, made->log->error);
    return image;
}

static void subsets_give_the_image_of_cpu(void **state)
{
    static const int subsets[] = {1, 4, 7};
    const bool sampled = test_backend_is("raster");
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        if (!is_asked_for(*name)) continue;
        struct made made = {.name = *name, .batches = "large", .mode = sampled ? LR_MODE_SAMPLED : LR_MODE_EXACT};
        make_scanner(&made);
        made.grid = make_grid(made.scanner, sampled ? 2 : 0);
        made.random = test_seed();
        made.num_voxels = lr_grid_num_voxels(&made.grid);
        /* The data are cpu's projection of an image with values from 0.25 to 1.25. */
        lr_lor_data *data = keep(lr_lor_data_create(made.lors, NULL));
        lr_operator *cpu = keep(create(&made, "cpu"));
        assert_ok(array_forward(cpu, kept_random_floats(made.num_voxels, 0.25, 1.25, &made.random), data->values));
        for (int k = 0; k < 3 && subsets[k] <= made.lors->num_pairs; k++) {
            float *expected = reconstruct(&made, "cpu", subsets[k], data);
            float *found = reconstruct(&made, test_backend, subsets[k], data);
            const double gap = l2_apart(found, expected, made.num_voxels);
            if (!(gap <= same_image)) {
                fail_msg("%s, %s, mode %d, batches %s, %d subsets: the image is %.3g from cpu's", made.name,
                         test_backend, (int)made.mode, made.batches, subsets[k], gap);
            }
        }
        destroy_kept(NULL);
    }
}

backend_main("cpu", CASE(parts_add_up_on_every_preset), CASE(subsets_give_the_image_of_cpu))
