/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "fixtures.h"

#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"
#include "operator/facade.h"

/* --- objects that live until the end of their case --- */

static struct {
    void *object;
    void (*destroy)(void *object);
} * all_kept;
static int count_kept, room_kept;

int num_kept(void)
{
    return count_kept;
}

void destroy_kept_since(int number)
{
    while (count_kept > number) {
        count_kept--;
        all_kept[count_kept].destroy(all_kept[count_kept].object);
    }
    if (count_kept > 0) return;
    free(all_kept);
    all_kept = NULL;
    room_kept = 0;
}

int destroy_kept(void **state)
{
    (void)state;
    destroy_kept_since(0);
    return 0;
}

check_fn *given_check(void **state)
{
    return (check_fn *)(uintptr_t)*state;
}

int test_run(const char *only, const char *group, struct CMUnitTest *tests, size_t count, void *state)
{
    if (only != NULL) cmocka_set_test_filter(only);
    for (size_t k = 0; k < count; k++) {
        if (tests[k].teardown_func == NULL) tests[k].teardown_func = destroy_kept;
        if (tests[k].initial_state == NULL) tests[k].initial_state = state;
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

void *keep_object(void *object, void (*destroy)(void *object))
{
    if (object == NULL) fail_msg("%s", lr_last_error(NULL));
    if (count_kept == room_kept) {
        room_kept = 2 * room_kept + 64;
        all_kept = non_null(realloc(all_kept, (size_t)room_kept * sizeof(*all_kept)));
    }
    all_kept[count_kept].object = object;
    all_kept[count_kept++].destroy = destroy;
    return object;
}

#define DEFINE_KEEP(name, destroy)                                                                                     \
    static void end_##name(void *object)                                                                               \
    {                                                                                                                  \
        destroy(object);                                                                                               \
    }                                                                                                                  \
    lr_##name *keep_##name(lr_##name *object)                                                                          \
    {                                                                                                                  \
        return keep_object(object, end_##name);                                                                        \
    }
EACH_KEPT(DEFINE_KEEP)

void *kept(int64_t count, size_t size)
{
    return keep_object(calloc((size_t)(count > 0 ? count : 1), size), free);
}

float *kept_floats(int64_t count)
{
    return kept(count, sizeof(float));
}

double *kept_doubles(int64_t count)
{
    return kept(count, sizeof(double));
}

double *kept_random_doubles(int64_t count, double low, double high, uint64_t *state)
{
    double *values = kept_doubles(count);
    for (int64_t k = 0; k < count; k++) values[k] = random_between(state, low, high);
    return values;
}

float *kept_random_floats(int64_t count, double low, double high, uint64_t *state)
{
    float *values = kept_floats(count);
    for (int64_t k = 0; k < count; k++) values[k] = (float)random_between(state, low, high);
    return values;
}

double *kept_random_singles(int64_t count, double low, double high, uint64_t *state)
{
    double *values = kept_random_doubles(count, low, high, state);
    for (int64_t k = 0; k < count; k++) values[k] = (double)(float)values[k];
    return values;
}

float *kept_equal_floats(int64_t count, float value)
{
    float *values = kept_floats(count);
    for (int64_t k = 0; k < count; k++) values[k] = value;
    return values;
}

double *kept_equal_doubles(int64_t count, double value)
{
    double *values = kept_doubles(count);
    for (int64_t k = 0; k < count; k++) values[k] = value;
    return values;
}

lr_image *kept_image(const lr_grid *grid, float value)
{
    lr_image *image = keep(lr_image_create(grid, NULL));
    for (int64_t v = 0; v < lr_grid_num_voxels(grid); v++) image->values[v] = value;
    return image;
}

struct test_log *kept_log(void)
{
    struct test_log *log = kept(1, sizeof(*log));
    test_log_init(log);
    return log;
}

static void end_vector(void *object)
{
    lr_vector_destroy(object);
    free(object);
}

lr_vector kept_vector(lr_place *place, int64_t count, lr_precision precision)
{
    lr_vector *vector = calloc(1, sizeof(*vector));
    const lr_vector_params params = {.place = place, .count = count, .precision = precision};
    assert_non_null(vector);
    if (lr_vector_create(&params, vector) != LR_OK) fail_msg("%s", lr_last_error(NULL));
    keep_object(vector, end_vector);
    return *vector;
}

/* --- small scanners --- */

lr_scanner *scanner_from(const char *format, ...)
{
    struct test_log log = TEST_LOG(log);
    char text[4096];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    lr_scanner *scanner = lr_scanner_parse(lr_yaml_parse("the test's scanner", text, length, &log.log));
    if (scanner == NULL) fail_msg("%s", log.error);
    return scanner;
}

static const double degrees = 3.14159265358979323846 / 180.0;

static const char *const names[FIXTURE_COUNT] = {"opposed", "oblique", "tilted",   "unequal",
                                                 "gapped",  "ring",    "two rings"};

lr_scanner *scanner_of_modules(const lr_module *modules, int count)
{
    return keep(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = count}));
}

lr_grid shifted_grid(const int size[3], const double voxel_mm[3], const double shift_mm[3])
{
    lr_grid grid = lr_grid_centred(size, voxel_mm);
    for (int k = 0; k < 3; k++) grid.origin_mm[k] += shift_mm[k];
    return grid;
}

lr_lors *lors_from(lr_scanner *scanner)
{
    return keep(lr_lors_create(keep(scanner), NULL));
}

/* A module of 5 x 4 crystals at an angle around the axis. */
static lr_module module_at(double radius_mm, double angle_deg)
{
    const double c = cos(angle_deg * degrees), s = sin(angle_deg * degrees);
    return filled(lr_module, .centre_mm = {radius_mm * c, radius_mm * s, 0.0}, .u = {-s, c, 0.0}, .v = {0.0, 0.0, 1.0},
                  .crystals = {5, 4}, .pitch_mm = {4.3, 4.3}, .face_mm = {4.0, 4.0}, .depth_mm = 20.0);
}

static void rotate(double vector[3], int axis, double angle_deg)
{
    const double c = cos(angle_deg * degrees), s = sin(angle_deg * degrees);
    const int j = (axis + 1) % 3, k = (axis + 2) % 3;
    const double a = vector[j], b = vector[k];
    vector[j] = c * a - s * b;
    vector[k] = s * a + c * b;
}

static void tilt(lr_module *module, int axis, double angle_deg)
{
    rotate(module->u, axis, angle_deg);
    rotate(module->v, axis, angle_deg);
}

static lr_scanner *create_pair(enum fixture_kind kind, const lr_log *log)
{
    lr_module modules[2] = {module_at(40.0, 90.0), module_at(40.0, 270.0)};
    if (kind == FIXTURE_OBLIQUE) {
        modules[1] = module_at(40.0, 240.0);
    } else if (kind == FIXTURE_TILTED) {
        tilt(&modules[1], 0, 20.0);
        tilt(&modules[1], 2, -15.0);
    } else if (kind == FIXTURE_UNEQUAL) {
        modules[1].crystals[0] = 3;
        modules[1].crystals[1] = 7;
        modules[1].pitch_mm[0] = 6.0;
        modules[1].pitch_mm[1] = 3.0;
        modules[1].face_mm[0] = 5.5;
        modules[1].face_mm[1] = 2.9;
    } else if (kind == FIXTURE_GAPPED) {
        for (int k = 0; k < 4; k++) modules[k / 2].face_mm[k % 2] = 2.5;
    }
    return lr_scanner_create(
        &(lr_scanner_params){.name = names[kind], .modules = modules, .num_modules = 2, .log = log});
}

static lr_scanner *create_ring(enum fixture_kind kind)
{
    const bool is_single = kind == FIXTURE_RING;
    return scanner_from("name: %s\nring: {radius_mm: 32, modules: %d, rings: %d, ring_pitch_mm: 20}\n"
                        "module: {crystals: [5, 4], pitch_mm: [4.3, 4.3], face_mm: [4, 4], depth_mm: 20}\n%s",
                        names[kind], is_single ? 8 : 6, is_single ? 1 : 2,
                        is_single ? "coincidence: {field_of_view_mm: 40}"
                                  : "coincidence: {min_module_difference: 2, max_ring_difference: 5}\n"
                                    "detection_depth_mm: 2");
}

void fixture_init(struct fixture *fixture, enum fixture_kind kind)
{
    struct test_log log = TEST_LOG(log);
    *fixture = (struct fixture){.name = names[kind]};
    fixture->scanner = kind < FIXTURE_RING ? create_pair(kind, &log.log) : create_ring(kind);
    if (fixture->scanner == NULL) fail_msg("fixture %s: %s", names[kind], log.error);
    fixture->lors = lr_lors_create(fixture->scanner, &log.log);
    if (fixture->lors == NULL) fail_msg("fixture %s: %s", names[kind], log.error);
    fixture->grid = lr_grid_centred((const int[3]){6, 7, 5}, (const double[3]){2.5, 3.0, 3.2});
    if (kind == FIXTURE_OBLIQUE) { /* half-way between the two */
        fixture->grid.origin_mm[0] -= 10.0;
        fixture->grid.origin_mm[1] += 2.7;
    }
    fixture->grid.origin_mm[0] += 0.31;
    fixture->grid.origin_mm[1] -= 0.47;
    fixture->grid.origin_mm[2] += 0.23;
}

void fixture_finish(struct fixture *fixture)
{
    lr_lors_destroy(fixture->lors);
    lr_scanner_destroy(fixture->scanner);
}

static void end_fixture(void *object)
{
    fixture_finish(object);
    free(object);
}

struct fixture kept_fixture(enum fixture_kind kind)
{
    struct fixture *fixture = non_null(calloc(1, sizeof(*fixture)));
    fixture_init(fixture, kind);
    keep_object(fixture, end_fixture);
    return *fixture;
}

lr_operator_params fixture_params(const struct fixture *fixture, const char *backend, const lr_log *log)
{
    return filled(lr_operator_params, .lors = fixture->lors, .grid = &fixture->grid, .backend = backend,
                  .mode = LR_MODE_SAMPLED, .rays = 2, .samples = {1, 1, 1}, .store = LR_STORE_NO, .threads = 2,
                  .log = log);
}

lr_operator *fixture_operator(const lr_operator_params *params)
{
    struct test_log log = TEST_LOG(log);
    lr_operator_params logged = *params;
    if (logged.log == NULL) logged.log = &log.log;
    lr_operator *op = lr_operator_create(&logged);
    if (op == NULL) fail_msg("no operator: %s", log.error);
    return op;
}

bool fixture_backend_is_usable(const char *backend)
{
    struct test_log log = TEST_LOG(log);
    struct fixture fixture;
    fixture_init(&fixture, FIXTURE_OPPOSED);
    const lr_operator_params params = fixture_params(&fixture, backend, &log.log);
    lr_operator *op = lr_operator_create(&params);
    const bool is_missing = op == NULL && log.status == LR_NO_DEVICE;
    if (is_missing) printf("skipped: backend %s: %s\n", backend, log.error);
    lr_operator_destroy(op);
    fixture_finish(&fixture);
    return !is_missing;
}

const char *test_backend;

bool test_backend_is_usable(int argc, char **argv, const char *usual)
{
    test_backend = argc > 1 ? argv[1] : usual;
    return fixture_backend_is_usable(test_backend);
}

bool test_backend_is(const char *name)
{
    return strcmp(test_backend, name) == 0;
}

int32_t *fixture_deal(const lr_lors *lors, int subsets)
{
    int32_t *of_pair = calloc((size_t)lors->num_pairs, sizeof(*of_pair));
    int32_t *of_lor = calloc((size_t)lors->count, sizeof(*of_lor));
    int interleave = 0;
    assert_ok(lr_osem_interleave(lors, subsets, &interleave, NULL));
    assert_true(of_pair != NULL && of_lor != NULL && interleave > 0);
    assert_ok(lr_osem_subsets(lors, subsets / interleave, of_pair, NULL));
    for (int64_t pair = 0; pair < lors->num_pairs; pair++)
        for (int64_t l = lors->offsets[pair]; l < lors->offsets[pair + 1]; l++)
            of_lor[l] = of_pair[pair] * interleave + lr_lors_turn(lors, l, interleave);
    free(of_pair);
    return of_lor;
}

static lr_status get_values(void *user, const lr_lor_span *span, float *values)
{
    const float *all = user;
    for (int64_t k = 0; k < span->count; k++)
        values[k] = all[span->numbers != NULL ? span->numbers[k] : span->first + k];
    return LR_OK;
}

lr_lor_source source_of_values(const float *values)
{
    return (lr_lor_source){get_values, (void *)(uintptr_t)values};
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    (void)user;
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = span->numbers != NULL ? span->numbers[k] : span->first + k;
        values[k] = lor % 5 == 0 ? 0.0f : 0.25f + (float)(lor % 7);
    }
    return LR_OK;
}

const lr_lor_source fixture_factors = {get_factors, NULL};

lr_lor_data *kept_sparse(const lr_lor_data *dense)
{
    lr_lor_data *sparse = kept(1, sizeof(*sparse));
    *sparse = (lr_lor_data){.index = kept(dense->count, sizeof(int64_t)), .values = kept_floats(dense->count)};
    for (int64_t l = 0; l < dense->count; l++) {
        if (dense->values[l] > 0.0f) {
            sparse->index[sparse->count] = l;
            sparse->values[sparse->count++] = dense->values[l];
        }
    }
    return sparse;
}

/* --- matrices --- */

lr_status dense_rows_take(void *user, const lr_row *row)
{
    struct dense_rows *rows = user;
    double sum = 0.0;
    assert_int_equal(row->row, rows->next_row);
    for (int64_t n = 0; n < row->count; n++) {
        assert_true(row->probability[n] > 0.0);
        assert_in_range(row->lor[n], n > 0 ? row->lor[n - 1] + 1 : 0, rows->num_lors - 1);
        sum += row->probability[n];
        if (rows->values != NULL) rows->values[row->row * rows->num_lors + row->lor[n]] = row->probability[n];
    }
    if (rows->sums != NULL) rows->sums[row->row] = sum;
    rows->num_elements += row->count;
    rows->next_row++;
    return LR_OK;
}

double *kept_rows(lr_operator *op, int64_t begin, int64_t end)
{
    const int64_t num_lors = lr_operator_get_info(op)->num_lors;
    double *values = kept_doubles((end - begin) * num_lors);
    struct dense_rows rows = {.num_lors = num_lors, .next_row = begin, .values = values - begin * num_lors};
    assert_ok(lr_operator_rows(op, begin, end, &(lr_row_sink){dense_rows_take, &rows}));
    assert_int_equal(rows.next_row, end);
    return values;
}

double *kept_point_rows(lr_operator *op, const double (*points_mm)[3], int num_points)
{
    struct dense_rows rows = {.num_lors = lr_operator_get_info(op)->num_lors};
    rows.values = kept_doubles(num_points * rows.num_lors);
    assert_ok(lr_operator_point_rows(op, points_mm, num_points, &(lr_row_sink){dense_rows_take, &rows}));
    assert_int_equal(rows.next_row, num_points);
    return rows.values;
}

/* --- comparisons --- */

double find_dot_product(lr_vector a, lr_vector b)
{
    double sum = 0.0;
    for (int64_t k = 0; k < a.count; k++) sum += lr_number_get(&a, k) * lr_number_get(&b, k);
    return sum;
}

double find_l2_apart(lr_vector a, lr_vector b)
{
    double square = 0.0;
    for (int64_t k = 0; k < a.count; k++) square += pow(lr_number_get(&a, k) - lr_number_get(&b, k), 2.0);
    return sqrt(square / find_dot_product(b, b));
}

double find_worst_apart(lr_vector a, lr_vector b)
{
    double worst = 0.0;
    for (int64_t k = 0; k < a.count; k++) {
        const double apart = fabs(lr_number_get(&a, k) - lr_number_get(&b, k));
        worst = apart > worst || isnan(apart) ? apart : worst; /* NaN remains the worst */
    }
    return worst / find_largest_number(b);
}

double find_largest_number(lr_vector a)
{
    double largest = 0.0;
    for (int64_t k = 0; k < a.count; k++) largest = fmax(largest, fabs(lr_number_get(&a, k)));
    return largest;
}

void assert_vectors_near(const char *what, const char *text, const lr_vector numbers[2], double share)
{
    const double largest = find_largest_number(numbers[1]);
    assert_true(largest > 0.0);
    for (int64_t k = 0; k < numbers[1].count; k++) {
        const double found = lr_number_get(&numbers[0], k), expected = lr_number_get(&numbers[1], k);
        if (!(fabs(found - expected) <= share * largest))
            fail_msg("%s: number %lld of %lld of %s is %.9g, not %.9g; the largest is %.9g", what, (long long)k,
                     (long long)numbers[1].count, text, found, expected, largest);
    }
}

void assert_vectors_adjoint(const char *what, const lr_vector values[2], const lr_vector images[2], double share)
{
    const double size = sqrt(find_dot_product(values[0], values[0]) * find_dot_product(values[1], values[1]));
    const double gap = fabs(find_dot_product(values[0], values[1]) - find_dot_product(images[0], images[1]));
    if (!(size > 0.0 && gap <= share * size))
        fail_msg("%s: <Ax, y> and <x, A'y> differ by %.3g of |Ax| |y| = %.3g", what, gap / size, size);
}
