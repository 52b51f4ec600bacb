/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxel mode against the matrix: the window shows the library's values of the elements. */
#include "waits.h"

#include "picture/pixel_lor.h"
#include "viewer/study/voxel.h"

#include <GL/glew.h>
#include <stdatomic.h>
#include <unistd.h>

#define PI 3.14159265358979323846

/* A study with a voxel mode. */
struct bench {
    struct study *study;
    struct study_view view;
    struct voxel *voxel;
};

static void bench_finish(void *self)
{
    struct bench *bench = self;
    voxel_destroy(bench->voxel);
    study_close(bench->study, &bench->view);
}

static struct bench *bench_open(const struct study_wish *wish)
{
    struct bench *bench = kept(1, sizeof(*bench));
    bench->study = study_opened(&bench->view, wish);
    bench->voxel = voxel_create(NULL);
    assert_non_null(bench->voxel);
    return keep_object(bench, bench_finish);
}

static const struct voxel_result *compute(struct bench *bench, const struct voxel_request *request)
{
    struct job_report report;
    assert_ok(voxel_ask(bench->voxel, &bench->view, request, NULL));
    if (voxel_wait(bench->voxel, &report) != JOB_DONE) fail_msg("%s", report.error);
    return voxel_result(bench->voxel, NULL);
}

/* Number of operators created so far. */
static int num_operators(const struct bench *bench)
{
    int count = 0;
    for (int k = 0; k < VOXEL_NUM_PURPOSES; k++) count += atomic_load(&bench->voxel->cached[k].num_made);
    return count;
}

static void random_point(const struct bench *bench, uint64_t *state, double point_mm[3])
{
    const lr_grid *grid = &bench->view.grid;
    for (int k = 0; k < 3; k++)
        point_mm[k] = grid->origin_mm[k] + test_random(state) * (grid->size[k] - 1) * grid->voxel_mm[k];
}

/* The row as `loraster matrix` computes it, for the point or for the point's voxel in the whole grid. */
static void library_row(const struct bench *bench, const struct voxel_result *result, lr_mode mode, bool of_voxel,
                        struct row_copy *copy)
{
    lr_operator *op = keep(lr_operator_create(&filled(
        lr_operator_params, .lors = bench->view.lors, .grid = &bench->view.grid, .backend = "cpu", .mode = mode,
        .rays = mode == LR_MODE_EXACT ? 0 : result->request.rays,
        .samples = {result->samples[0], result->samples[1], result->samples[2]},
        .mu = result->has_mu ? bench->view.mu : NULL, .mu_steps = result->request.mu_steps, .store = LR_STORE_NO)));
    struct row_copier copier = {copy, NULL, true};
    const lr_row_sink sink = {row_copier_take, &copier};
    const double(*point)[3] = (const double(*)[3])result->request.point_mm;
    assert_ok(of_voxel ? lr_operator_rows(op, result->voxel_row, result->voxel_row + 1, &sink)
                       : lr_operator_point_rows(op, point, 1, &sink));
}

static void assert_same_row(const struct voxel_row *found, const struct row_copy *wanted)
{
    assert_int_equal(found->count, wanted->row.count);
    for (int64_t k = 0; k < found->count; k++) {
        assert_all(found->lor[k] == wanted->row.lor[k], found->probability[k] == wanted->row.probability[k]);
        if (k > 0 && found->order != NULL)
            assert_true(found->probability[found->order[k - 1]] >= found->probability[found->order[k]]);
    }
    assert_true(found->sum == wanted->sum);
}

/* Each LOR of the row lies in one window only, and the weights of its lines add up to its element. */
static void compare_windows(const struct bench *bench, const struct voxel_result *result)
{
    const struct voxel_row *row = &result->point_sampled;
    const lr_row view = {0, row->count, row->lor, row->probability};
    double *sums = kept(row->count, sizeof(*sums));
    int *windows = kept(row->count, sizeof(*windows));
    for (int w = 0; w < result->num_windows; w++) {
        const struct voxel_window *window = &result->windows[w];
        for (int64_t n = 0; n < (int64_t)window->size[0] * window->size[1]; n++) {
            if (window->lors[n] < 0) {
                assert_true(isnan(window->sampled[n]) && window->weight[n] == 0);
                continue;
            }
            int64_t k = 0;
            while (k < row->count && row->lor[k] != window->lors[n]) k++;
            assert_all(k < row->count, window->sampled[n] == (float)lr_row_element(&view, window->lors[n]));
            assert_true(windows[k] == 0 || windows[k] == w + 1);
            windows[k] = w + 1;
            sums[k] += window->weight[n];
            const lr_lor lor = lr_lors_describe(bench->view.lors, window->lors[n]);
            assert_true(lor.module_i == window->module || lor.module_j == window->module);
            assert_int_equal(lr_lors_primary(bench->view.lors, window->lors[n], result->request.point_mm),
                             window->module);
        }
    }
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(windows[k] > 0);
        assert_close(sums[k], row->probability[k], 1e-6); /* pixels are in single precision */
    }
}

static void windows_are_the_matrix(void **state)
{
    uint64_t seed = test_seed();
    static const char *const names[] = {"two-opposed-modules", "ge-explore-vista-dr"};
    for (int n = 0; n < 2; n++) {
        struct bench *bench = bench_open(&(struct study_wish){.scanner = names[n]});
        for (int rays = 1; rays <= 3; rays++) {
            struct voxel_request request = {
                .all_primaries = true, .rays = rays, .samples = 4, .mode = LR_MODE_EXACT, .backend = "cpu"};
            random_point(bench, &seed, request.point_mm);
            const struct voxel_result *result = compute(bench, &request);
            assert_int_equal(result->num_windows, bench->view.scanner->num_modules);
            assert_int_equal(result->samples[0] * result->samples[1] * result->samples[2], 4);
            assert_all(result->voxel_row >= 0 && result->point_sampled.count > 0, result->has_means);
            const struct voxel_row *rows[4] = {&result->point_sampled, &result->voxel_sampled, &result->point_exact,
                                               &result->voxel_exact};
            struct row_copy row = {0};
            for (int k = 0; k < 4; k++) {
                library_row(bench, result, k / 2 ? LR_MODE_EXACT : LR_MODE_SAMPLED, k % 2, &row);
                assert_same_row(rows[k], &row);
            }
            row_copy_finish(&row);
            compare_windows(bench, result);
        }
        destroy_kept(NULL);
    }
}

/* Compares all values shown for one pixel with the library's. */
static void check_pixel(const struct bench *bench, const struct voxel_result *result, const int place[2])
{
    const struct voxel_window *window = &result->windows[0];
    const int rays = result->request.rays;
    const int64_t n = (int64_t)place[1] * window->size[0] + place[0];
    struct voxel_pixel pixel;
    assert_ints(voxel_at(bench->voxel, window->module, place, &pixel), LR_OK, pixel.p, place[0] / rays);
    assert_int_equal(pixel.q, place[1] / rays);
    assert_true(pixel.lor == window->lors[n]);
    if (pixel.lor < 0) {
        assert_true(isnan(pixel.point_exact) && isnan(pixel.survival) && pixel.weight == 0);
        return;
    }
    const lr_lor lor = lr_lors_describe(bench->view.lors, pixel.lor);
    const bool first = lor.module_i == window->module;
    assert_ints(first ? lor.p : lor.r, pixel.p, first ? lor.q : lor.s, pixel.q);
    assert_ints(first ? lor.module_j : lor.module_i, pixel.other, first ? lor.r : lor.p, pixel.r);
    assert_int_equal(first ? lor.s : lor.q, pixel.s);
    const struct voxel_row *rows[4] = {&result->point_sampled, &result->point_exact, &result->voxel_sampled,
                                       &result->voxel_exact};
    const double shown[4] = {pixel.point_sampled, pixel.point_exact, pixel.voxel_sampled, pixel.voxel_exact};
    for (int k = 0; k < 4; k++) {
        const lr_row row = {0, rows[k]->count, rows[k]->lor, rows[k]->probability};
        const double wanted = lr_row_element(&row, pixel.lor);
        assert_true(shown[k] == wanted || (isnan(shown[k]) && isnan(wanted)));
    }
    assert_true(window->exact[n] == (float)pixel.point_exact);
    assert_true(window->difference[n] == (float)(pixel.point_sampled - pixel.point_exact));
    assert_close(pixel.weight * 2 * PI, pixel.solid_angle_sr * pixel.survival, 1e-6);
}

/* The module farthest from a point is the primary of all its LORs. */
static int farthest_module(const struct bench *bench, const double point_mm[3])
{
    const lr_scanner *scanner = bench->view.scanner;
    double most = 0;
    int farthest = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        double centre_mm[3], square = 0;
        lr_scanner_detection_centre(scanner, m, centre_mm);
        for (int k = 0; k < 3; k++) square += (centre_mm[k] - point_mm[k]) * (centre_mm[k] - point_mm[k]);
        farthest = square > most ? m : farthest;
        most = fmax(most, square);
    }
    return farthest;
}

static void the_cursor_shows_the_element(void **state)
{
    uint64_t seed = test_seed();
    struct voxel_pixel pixel;
    int counted = 0;
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    for (int n = 0; n < 4; n++) {
        struct voxel_request request = {.rays = 2, .mode = LR_MODE_EXACT, .backend = "cpu"};
        random_point(bench, &seed, request.point_mm);
        request.primary = farthest_module(bench, request.point_mm);
        const struct voxel_result *result = compute(bench, &request);
        const struct voxel_window *window = &result->windows[0];
        for (int y = 0; y < window->size[1]; y++) {
            for (int x = 0; x < window->size[0]; x++) {
                check_pixel(bench, result, (int[2]){x, y});
                counted += window->lors[(int64_t)y * window->size[0] + x] >= 0;
            }
        }
        assert_int_equal(voxel_at(bench->voxel, request.primary + 1, (int[2]){0, 0}, &pixel), LR_USAGE);
        assert_int_equal(voxel_at(bench->voxel, request.primary, (int[2]){-1, 0}, &pixel), LR_USAGE);
        assert_int_equal(voxel_at(bench->voxel, request.primary, window->size, &pixel), LR_USAGE);
    }
    assert_true(counted > 100);
}

/* Lines to a face cover it: their solid angles add up to the solid angle of the rectangle seen from the point, which
 * has a closed form in the corners. */
static void solid_angles_add_up(void **state)
{
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "two-opposed-modules"});
    const struct voxel_request request = {.primary = 1, .rays = 32, .mode = LR_MODE_SAMPLED};
    const struct voxel_result *result = compute(bench, &request); /* from the centre */
    const lr_module *module = &bench->view.scanner->modules[1];
    double centre_mm[3], sum = 0;
    lr_scanner_detection_centre(bench->view.scanner, 1, centre_mm);
    const int middle[2] = {module->crystals[0] / 2, module->crystals[1] / 2};
    const double h =
        fabs(centre_mm[0] * module->normal[0] + centre_mm[1] * module->normal[1] + centre_mm[2] * module->normal[2]);
    for (int b = 0; b < 32; b++) {
        for (int a = 0; a < 32; a++) {
            struct voxel_pixel pixel;
            const int place[2] = {middle[0] * 32 + a, middle[1] * 32 + b};
            assert_ok(voxel_at(bench->voxel, 1, place, &pixel));
            sum += pixel.solid_angle_sr;
        }
    }
    double exact = 0;
    for (int corner = 0; corner < 4; corner++) {
        const int side[2] = {corner % 2, corner / 2};
        double at[2];
        for (int k = 0; k < 2; k++) {
            at[k] = (middle[k] - 0.5 * (module->crystals[k] - 1)) * module->pitch_mm[k] +
                    (side[k] - 0.5) * module->face_mm[k];
        }
        const double omega = atan(at[0] * at[1] / (h * sqrt(h * h + at[0] * at[0] + at[1] * at[1])));
        exact += side[0] == side[1] ? omega : -omega;
    }
    assert_close(sum, exact, 1e-5); /* the midpoint rule on 32 x 32 points of a small face */
    assert_false(result->has_exact);
    assert_null(result->windows[0].exact);
}

/* In an attenuating medium that fills the space, the survival is that of the whole line. */
static void absorption_is_exponential(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){4, 4, 4}, (const double[3]){400, 400, 400});
    lr_image *mu = lr_image_create(&grid, NULL);
    for (int k = 0; k < 64; k++) mu->values[k] = 0.0096f;
    assert_ok(lr_image_write("voxel_mu.nii", mu, NULL));
    lr_image_destroy(mu);
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "two-opposed-modules", .mu = "voxel_mu.nii"});
    struct voxel_request request = {.point_mm = {3, 2, 1}, .rays = 4, .mu_steps = 5};
    request.primary = farthest_module(bench, request.point_mm);
    for (int turn = 0; turn < 4; turn++) {
        const bool without = turn % 2;
        request.without_mu = without;
        request.backend = voxel_backends[turn < 2 ? 2 : 0];
        const struct voxel_result *result = compute(bench, &request);
        const struct voxel_window *window = &result->windows[0];
        int counted = 0;
        assert_int_equal(result->has_mu, !without);
        for (int y = 0; y < window->size[1]; y++) {
            for (int x = 0; x < window->size[0]; x++) {
                struct voxel_pixel pixel;
                assert_ok(voxel_at(bench->voxel, request.primary, (int[2]){x, y}, &pixel));
                if (pixel.lor >= 0) {
                    const double wanted = without ? 1 : exp(-0.0096 * pixel.distance_mm);
                    assert_close(pixel.survival, wanted, turn < 2 ? 2e-6 : 1e-5); /* single
                                                                                  precision */
                    counted++;
                }
            }
        }
        assert_true(counted > 0);
    }
    unlink("voxel_mu.nii");
}

/* Draws one point with each of voxel_backends. Windows and rows agree except for lines onto edges, which this point
 * does not have, and each result names its backend. */
static void pictures_name_their_backend(void **state)
{
    double sums[3][2];
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    struct voxel_request request = {.point_mm = {5.137, 3.291, 2.713}, .rays = 3, .samples = 1, .mode = LR_MODE_EXACT};
    request.primary = farthest_module(bench, request.point_mm);
    bool has_opengl = true;
    for (int k = 2; k >= 0; k--) {
        request.backend = k > 0 ? voxel_backends[k] : NULL;
        const struct voxel_result *result = compute(bench, &request);
        const struct voxel_window *window = &result->windows[0];
        double weight = 0;
        for (int64_t n = 0; n < (int64_t)window->size[0] * window->size[1]; n++) weight += window->weight[n];
        sums[k][0] = weight;
        sums[k][1] = result->point_sampled.sum;
        assert_close(sums[k][0], sums[2][0], 1e-5);
        assert_close(sums[k][1], sums[2][1], 1e-5);
        has_opengl = has_opengl && result->why_not[0] == '\0';
        const bool stands_in = k == 2 || !has_opengl;
        assert_string_equal(result->drawn_by, stands_in ? "cpu" : "raster");
        assert_string_equal(result->sampled_by, stands_in ? "cpu" : k == 1 ? "compute" : "raster");
        assert_string_equal(result->exact_by, k == 2                 ? "cpu"
                                              : k == 1 && !stands_in ? "compute"
                                              : k == 1               ? "cpu"
                                                                     : "native");
        assert_true(strlen(result->drawn_on) > 0);
    }
}

/* The same windows and rows, to the last bit. */
static void assert_same_pictures(const struct voxel_result *one, const struct voxel_result *other)
{
    assert_int_equal(one->num_windows, other->num_windows);
    for (int w = 0; w < one->num_windows; w++) {
        const struct voxel_window *a = &one->windows[w], *b = &other->windows[w];
        const size_t count = (size_t)a->size[0] * (size_t)a->size[1];
        assert_memory_equal(a->size, b->size, sizeof(a->size));
        assert_memory_equal(a->pixels, b->pixels, count * sizeof(*a->pixels));
        assert_memory_equal(a->weight, b->weight, count * sizeof(*a->weight));
    }
    const struct voxel_row *rows[2][4] = {
        {&one->point_sampled, &one->point_exact, &one->voxel_sampled, &one->voxel_exact},
        {&other->point_sampled, &other->point_exact, &other->voxel_sampled, &other->voxel_exact}};
    for (int k = 0; k < 4; k++) {
        const size_t count = (size_t)rows[0][k]->count;
        assert_int_equal(rows[0][k]->count, rows[1][k]->count);
        assert_memory_equal(rows[0][k]->lor, rows[1][k]->lor, count * sizeof(int64_t));
        assert_memory_equal(rows[0][k]->probability, rows[1][k]->probability, count * sizeof(double));
    }
}

/* The result of a new voxel mode that has drawn nothing before. */
static void compare_with_new(struct bench *bench, const struct voxel_request *request)
{
    struct bench other = *bench;
    other.voxel = voxel_create(NULL);
    assert_same_pictures(voxel_result(bench->voxel, NULL), compute(&other, request));
    voxel_destroy(other.voxel);
}

/* Skips the test where nothing can be rasterised. */
static void need_raster(struct bench *bench)
{
    struct bench other = *bench;
    other.voxel = voxel_create(NULL);
    const struct voxel_request request = {.rays = 1, .mode = LR_MODE_SAMPLED};
    const bool can = strcmp(compute(&other, &request)->drawn_by, "raster") == 0;
    voxel_destroy(other.voxel);
    if (can) return;
    print_message("skipped: nothing can be rasterised here\n");
    skip();
}

/* Contexts and shaders are made only once: while the settings stay, the operators of the first picture draw the further
 * ones, too, even if some of them were stopped halfway. */
static void operators_stay_open(void **state)
{
    uint64_t seed = test_seed();
    struct voxel_request request = {.all_primaries = true, .rays = 2, .samples = 2, .mode = LR_MODE_SAMPLED};
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    need_raster(bench);
    for (int n = 0; n < 3; n++) {
        random_point(bench, &seed, request.point_mm);
        (void)compute(bench, &request);
        assert_int_equal(num_operators(bench), 1);
        compare_with_new(bench, &request);
    }
    request.mode = LR_MODE_EXACT;
    for (int n = 0; n < 100; n++) {
        random_point(bench, &seed, request.point_mm);
        assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
        (void)voxel_poll(bench->voxel, NULL);
    }
    assert_int_equal(voxel_wait(bench->voxel, NULL), JOB_DONE);
    assert_int_equal(num_operators(bench), 2); /* one for exact elements */
    compare_with_new(bench, &request);
    request.rays = 3;
    (void)compute(bench, &request);
    assert_int_equal(num_operators(bench), 3); /* the exact operator stays: it has no rays */
    compare_with_new(bench, &request);
    request.backend = "cpu";
    (void)compute(bench, &request);
    request.backend = NULL;
    const int before = num_operators(bench);
    (void)compute(bench, &request);
    assert_int_equal(num_operators(bench), before + 2); /* those of cpu had replaced the others */
    study_reopen(bench->study, &bench->view, &(struct study_wish){.scanner = "two-opposed-modules"});
    (void)compute(bench, &request);
    assert_int_equal(num_operators(bench), before + 4);
    compare_with_new(bench, &request);
}

/* A variable of the file, because the replaced function has no other state. */
static atomic_int resets_left;

static GLenum GLAPIENTRY answer_reset(void)
{
    return atomic_fetch_sub(&resets_left, 1) > 0 ? GL_UNKNOWN_CONTEXT_RESET : GL_NO_ERROR;
}

/* A new operator draws the picture if the driver resets the context between two pictures. No software renderer loses a
 * context; therefore the driver's answer is replaced, once. */
static void a_lost_context_is_made_again(void **state)
{
    struct job_report report;
    struct voxel_request request = {
        .point_mm = {5.137, 3.291, 2.713}, .rays = 2, .samples = 2, .mode = LR_MODE_SAMPLED};
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    need_raster(bench);
    request.primary = farthest_module(bench, request.point_mm);
    (void)compute(bench, &request);
    const PFNGLGETGRAPHICSRESETSTATUSPROC own = glGetGraphicsResetStatus;
    atomic_init(&resets_left, 1);
    glGetGraphicsResetStatus = answer_reset;
    request.point_mm[0] = -4.219;
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
    assert_int_equal(voxel_wait(bench->voxel, &report), JOB_DONE);
    glGetGraphicsResetStatus = own;
    assert_true(atomic_load(&resets_left) <= 0);
    assert_string_equal(report.error, "");
    assert_string_equal(voxel_result(bench->voxel, NULL)->drawn_by, "raster");
    assert_int_equal(num_operators(bench), 2);
    compare_with_new(bench, &request);
}

/* However quickly points are requested, the last one is computed; task_runner.c counts the others. */
static void the_newest_request_wins(void **state)
{
    uint64_t seed = test_seed();
    int64_t serial = 0;
    struct voxel_request request = {.all_primaries = true, .rays = 4};
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    for (int n = 0; n < 200; n++) {
        random_point(bench, &seed, request.point_mm);
        request.rays = 1 + n % 8;
        assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
        (void)voxel_poll(bench->voxel, NULL);
    }
    assert_int_equal(voxel_wait(bench->voxel, NULL), JOB_DONE);
    const struct voxel_result *result = voxel_result(bench->voxel, &serial);
    assert_memory_equal(result->request.point_mm, request.point_mm, sizeof(request.point_mm));
    assert_int_equal(result->request.rays, request.rays);
    assert_true(serial >= 1);
    /* The mode is destroyed while one request runs and another one waits. */
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
}

/* Windows are shown before the voxel's mean is computed. */
static void windows_come_before_means(void **state)
{
    struct voxel_pixel pixel;
    int64_t first, second;
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "ge-explore-vista-dr"});
    struct voxel_request request = {.point_mm = {5, 4, 3}, .samples = 4096, .rays = 1};
    request.primary = farthest_module(bench, request.point_mm);
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
    while (voxel_result(bench->voxel, &first) == NULL) assert_int_equal(voxel_poll(bench->voxel, NULL), JOB_RUNNING);
    assert_false(voxel_result(bench->voxel, NULL)->has_means);
    const struct voxel_window *window = &voxel_result(bench->voxel, NULL)->windows[0];
    int n = 0;
    while (window->lors[n] < 0) n++;
    const int place[2] = {n % window->size[0], n / window->size[0]};
    assert_ok(voxel_at(bench->voxel, request.primary, place, &pixel));
    assert_true(pixel.point_exact > 0 && isnan(pixel.voxel_exact));
    /* The result of a request that is no longer the newest is dropped. */
    request.samples = 2;
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, NULL));
    assert_int_equal(voxel_wait(bench->voxel, NULL), JOB_DONE);
    assert_true(voxel_result(bench->voxel, &second)->has_means && second > first);
    assert_int_equal(voxel_result(bench->voxel, NULL)->request.samples, 2);
    assert_ok(voxel_at(bench->voxel, request.primary, place, &pixel));
    assert_true(pixel.voxel_exact >= 0);
}

/* A result keeps the scanner and other objects that it refers to. */
static void results_outlive_the_study(void **state)
{
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "two-opposed-modules"});
    const struct voxel_request request = {.rays = 2};
    (void)compute(bench, &request);
    study_view_release(&bench->view);
    assert_ok(study_open(bench->study, &(struct study_wish){.scanner = "ge-explore-vista-dr"}));
    assert_int_equal(study_wait(bench->study, NULL), JOB_DONE);
    assert_int_equal(voxel_result(bench->voxel, NULL)->study->scanner->num_modules, 2);
    bench->view = study_take(bench->study);
    assert_int_equal(bench->view.scanner->num_modules, 36);
}

static void refusals(void **state)
{
    struct test_log log = TEST_LOG(log);
    struct job_report report;
    const struct study_view nothing = {0};
    struct bench *bench = bench_open(&(struct study_wish){.scanner = "two-opposed-modules"});
    struct voxel_request request = {0};
    assert_int_equal(voxel_ask(bench->voxel, &nothing, &request, &log.log), LR_USAGE);
    request.primary = 2;
    assert_fails(voxel_ask(bench->voxel, &bench->view, &request, &log.log), LR_USAGE, &log, "0 to 1");
    request.primary = 0;
    request.point_mm[1] = NAN;
    assert_int_equal(voxel_ask(bench->voxel, &bench->view, &request, &log.log), LR_USAGE);
    assert_int_equal(voxel_poll(bench->voxel, NULL), JOB_IDLE);
    assert_null(voxel_result(bench->voxel, NULL));
    /* The earlier result stays if a job fails. */
    request.point_mm[1] = 0;
    (void)compute(bench, &request);
    request.rays = 1000;
    request.all_primaries = true;
    assert_ok(voxel_ask(bench->voxel, &bench->view, &request, &log.log));
    assert_int_equal(voxel_wait(bench->voxel, &report), JOB_FAILED);
    assert_says(report.error, "smaller R");
    assert_int_equal(voxel_result(bench->voxel, NULL)->request.rays, 4);
    /* A point outside the grid gets a voxel around it, which has no row of the grid. */
    request = (struct voxel_request){0};
    request.point_mm[1] = bench->view.grid.origin_mm[1] - bench->view.grid.voxel_mm[1];
    assert_int_equal(compute(bench, &request)->voxel_row, -1);
}

test_main("viewer_voxel", cmocka_unit_test(windows_are_the_matrix), cmocka_unit_test(the_cursor_shows_the_element),
          cmocka_unit_test(pictures_name_their_backend), cmocka_unit_test(solid_angles_add_up),
          cmocka_unit_test(absorption_is_exponential), cmocka_unit_test(operators_stay_open),
          cmocka_unit_test(a_lost_context_is_made_again), cmocka_unit_test(the_newest_request_wins),
          cmocka_unit_test(windows_come_before_means), cmocka_unit_test(results_outlive_the_study),
          cmocka_unit_test(refusals))
