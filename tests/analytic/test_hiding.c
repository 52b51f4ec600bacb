/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules that hide others: exact elements compared with lines in random directions, sampled elements and
 * correspondence images compared with the same lines. Argument: the backend. */
#include "hiding.h"

/* Lines through each point in random directions. */
enum { NUM_LINES = 4000000 };

/* Standard deviations of a count. Some 50 sums are compared, so that one seed in eight fails by chance. */
#define SIGMAS 3

/* Pairs of modules with a smaller count are counted together in Pearson's statistic. */
#define FEWEST 25

/* Rays along each edge of a crystal, in sampled mode. */
enum { RAYS = 25 };

struct kind {
    const char *backend;
    bool has_exact, has_pictures;
    double exact_l2; /* of a row compared with that of cpu, relative */
    double line;     /* of an element without lines near edges, relative */
};

static const struct kind kinds[] = {
    {"cpu", true, true, 0, 1e-11}, {"raster", false, true, 0, 1e-5}, {"compute", true, false, 1e-5, 1e-5}};

/* Objects of the test of one arrangement. */
struct bench {
    const struct kind *kind;
    struct hiding hiding;
    lr_grid grid;
};

static lr_operator *make_operator(struct bench *bench, const char *backend, lr_mode mode)
{
    return keep(lr_operator_create(&filled(lr_operator_params, .lors = bench->hiding.lors, .grid = &bench->grid,
                                           .backend = backend, .mode = mode, .rays = RAYS, .samples = {1, 1, 1},
                                           .store = LR_STORE_NO, .threads = 2)));
}

/* A point's elements, [num_lors]. */
static double *point_row(const struct hiding *hiding, lr_operator *op, int point)
{
    return kept_point_rows(op, &hiding->arrangement->points_mm[point], 1);
}

/* --- sums --- */

/* Counts of NUM_LINES random lines for each LOR. */
static double *count_lines(const struct hiding *hiding, int point, uint64_t seed)
{
    double *counts = kept_doubles(hiding->lors->count);
    eye_place(hiding->eye, hiding->arrangement->points_mm[point]);
    for (uint32_t n = 0; n < NUM_LINES; n++) {
        double direction[3];
        draw_direction(seed, n, direction);
        const struct line line = follow(hiding->eye, direction);
        const int64_t lor = line_lor(hiding, &line);
        if (lor >= 0) counts[lor]++;
    }
    return counts;
}

/* Sums of some LORs of two rows. */
struct sums {
    double counted, probability;
};

static void add_pair(const struct hiding *hiding, int64_t pair, const double *counts, const double *row,
                     struct sums *sums)
{
    for (int64_t lor = hiding->lors->offsets[pair]; lor < hiding->lors->offsets[pair + 1]; lor++) {
        sums->counted += counts[lor];
        sums->probability += row[lor];
    }
}

static double deviations(const struct sums *sums)
{
    const double expected = NUM_LINES * sums->probability, variance = expected * (1 - sums->probability);
    return variance > 0 ? (sums->counted - expected) / sqrt(variance) : 0;
}

/* Number of standard deviations of a normal distribution with the same probability: Wilson and Hilferty, PNAS 17:684
 * (1931). */
static double chi2_deviations(double chi2, int degrees)
{
    const double width = 2.0 / (9.0 * degrees);
    return (cbrt(chi2 / degrees) - (1 - width)) / sqrt(width);
}

/* slack: error of the row that is allowed in addition, as a probability. */
static void check_sum(const struct hiding *hiding, int point, const char *what, const struct sums *sums, double slack)
{
    const double difference = sums->counted / NUM_LINES - sums->probability, z = deviations(sums);
    if (sums->probability == 0 && sums->counted == 0) return;
    print_message("%s, point %d, %s: %.6f, lines %.6f, z = %+.2f\n", hiding->arrangement->name, point, what,
                  sums->probability, sums->counted / NUM_LINES, z);
    assert_true(sums->probability > 0 || sums->counted == 0);
    const double over = fmax(fabs(difference) - slack, 0);
    assert_true(deviations(&(struct sums){NUM_LINES * (sums->probability + over), sums->probability}) < SIGMAS);
}

/* Compares pairs of panels, the total, and Pearson's statistic over pairs of modules. */
static void check_sums(const struct hiding *hiding, int point, const double *counts, const double *row,
                       double slack_share)
{
    const int num_panels = hiding->arrangement->num_panels;
    struct sums sums[MOST_PANELS][MOST_PANELS] = {{{0}}}, total = {0}, rest = {0};
    double chi2 = 0;
    int degrees = 0;
    for (int64_t pair = 0; pair < hiding->lors->num_pairs; pair++) {
        const int32_t *modules = hiding->lors->pairs[pair];
        const int a = hiding->panels[modules[0]], b = hiding->panels[modules[1]];
        struct sums here = {0};
        add_pair(hiding, pair, counts, row, &sums[a < b ? a : b][a < b ? b : a]);
        add_pair(hiding, pair, counts, row, &total);
        add_pair(hiding, pair, counts, row, &here);
        if (NUM_LINES * here.probability >= FEWEST) {
            chi2 += pow(deviations(&here), 2);
            degrees++;
        } else {
            rest.counted += here.counted;
            rest.probability += here.probability;
        }
    }
    for (int a = 0; a < num_panels; a++) {
        for (int b = a; b < num_panels; b++) {
            char what[32];
            snprintf(what, sizeof(what), "%d and %d", a, b);
            check_sum(hiding, point, what, &sums[a][b], slack_share * sums[a][b].probability);
        }
    }
    check_sum(hiding, point, "total", &total, slack_share * total.probability);
    if (NUM_LINES * rest.probability >= FEWEST)
        check_sum(hiding, point, "rare pairs", &rest, slack_share * rest.probability);
    if (slack_share == 0 && degrees > 3) {
        print_message("chi2 %.1f over %d pairs of modules\n", chi2, degrees);
        assert_true(chi2_deviations(chi2, degrees) < SIGMAS);
    }
}

/* --- elements --- */

/* Direction and weight of the line from the eye's point to a pixel of a module. */
static double pixel_line(const struct eye *eye, int m, int pixel, double ray[3])
{
    eye_pixel_line(eye, m, pixel, ray);
    return fmax(eye_weight(eye, m, ray), 0);
}

/* Elements by the definition, [num_lors]; *borderline: sum of the lines near edges. */
static double *sampled_row(const struct hiding *hiding, int point, double *borderline)
{
    double *row = kept_doubles(hiding->lors->count);
    *borderline = 0;
    eye_place(hiding->eye, hiding->arrangement->points_mm[point]);
    for (int m = 0; m < hiding->scanner->num_modules; m++) {
        for (int n = 0; n < eye_num_pixels(hiding->eye, m); n++) {
            double ray[3];
            const double weight = pixel_line(hiding->eye, m, n, ray);
            const struct line line = follow(hiding->eye, ray);
            const int64_t lor = line_lor(hiding, &line);
            *borderline += is_borderline(hiding->eye, ray) ? weight : 0;
            if (weight > 0 && lor >= 0 && line.met[0].module == m && eye_is_primary(hiding->eye, m, line.met[1].module))
                row[lor] += weight;
        }
    }
    return row;
}

static void bench_init(struct bench *bench, const struct kind *kind, int arrangement)
{
    *bench = (struct bench){.kind = kind};
    hiding_init(&bench->hiding, &arrangements[arrangement], RAYS);
    bench->grid = lr_grid_centred((int[3]){5, 4, 3}, (double[3]){19, 17, 7});
}

static void test_elements(void **state)
{
    const uint64_t seed = test_seed();
    for (int n = 0; n < length_of(arrangements); n++) {
        struct bench bench;
        bench_init(&bench, *state, n);
        const char *backend = bench.kind->backend;
        const bool has_exact = bench.kind->has_exact;
        lr_operator *const ops[3] = {make_operator(&bench, backend, LR_MODE_SAMPLED),
                                     has_exact ? make_operator(&bench, backend, LR_MODE_EXACT) : NULL,
                                     make_operator(&bench, "cpu", LR_MODE_EXACT)};
        for (int point = 0; point < arrangements[n].num_points; point++) {
            const struct hiding *hiding = &bench.hiding;
            double borderline, *counts = count_lines(hiding, point, seed + (uint64_t)(16 * n + point));
            double *expected = sampled_row(hiding, point, &borderline), *sampled = point_row(hiding, ops[0], point);
            /* A line that falls on the other side of an edge leaves one element and joins another. */
            double largest = 0, sum = 0;
            for (int64_t lor = 0; lor < bench.hiding.lors->count; lor++) {
                const double over =
                    fabs(sampled[lor] - expected[lor]) - bench.kind->line * fmax(sampled[lor], expected[lor]);
                largest = fmax(largest, over);
                sum += fmax(over, 0);
            }
            if (largest > borderline || sum > 2 * borderline) {
                fail_msg("%s, point %d: elements differ by up to %.3g, %.3g in all; lines near edges carry %.3g",
                         bench.hiding.arrangement->name, point, largest, sum, borderline);
            }
            /* Lines of crystals that line up cross an edge together: one line in R. */
            print_message("sampled\n");
            check_sums(hiding, point, counts, sampled, 1.0 / RAYS);
            if (ops[1] != NULL) {
                double *exact = point_row(hiding, ops[1], point), *reference = point_row(hiding, ops[2], point);
                print_message("exact\n");
                check_sums(hiding, point, counts, exact, 0);
                /* Some backends compute the outlines of overlaps in single precision; the worst element may have ten
                 * times the error of the row. */
                const int64_t count = bench.hiding.lors->count;
                const double l2 = l2_apart(exact, reference, count), worst = worst_apart(exact, reference, count);
                print_message("%s, point %d: L2 %.1e, worst %.1e of the largest\n", bench.hiding.arrangement->name,
                              point, l2, worst);
                assert_all(l2 <= bench.kind->exact_l2, worst <= 10 * bench.kind->exact_l2);
            }
        }
    }
}

/* --- correspondence images --- */

static bool is_same_pixel(const lr_pixel *pixel, const struct line *line, bool is_seen)
{
    const struct met *other = &line->met[1];
    if (!is_seen || other->crystal < 0) return pixel->module == -1 && pixel->r == -1 && pixel->s == -1;
    return pixel->module == (float)other->module && pixel->r == (float)other->at[0] && pixel->s == (float)other->at[1];
}

static void test_pictures(void **state)
{
    const struct kind *kind = *state;
    for (int n = 0; kind->has_pictures && n < length_of(arrangements); n++) {
        struct bench bench;
        bench_init(&bench, kind, n);
        lr_operator *op = make_operator(&bench, kind->backend, LR_MODE_SAMPLED);
        for (int point = 0; point < arrangements[n].num_points; point++)
            for (int module = 0; module < bench.hiding.scanner->num_modules; module++) {
                /* The lines of one module end where the definition says, and have its weights. */
                struct hiding *hiding = &bench.hiding;
                const double *point_mm = hiding->arrangement->points_mm[point];
                const int num_pixels = eye_num_pixels(hiding->eye, module);
                lr_pixel *pixels = kept(num_pixels, sizeof(*pixels));
                assert_ok(lr_operator_picture(op, point_mm, module, pixels));
                eye_place(hiding->eye, point_mm);
                for (int k = 0; k < num_pixels; k++) {
                    double ray[3];
                    const double weight = pixel_line(hiding->eye, module, k, ray);
                    const struct line line = follow(hiding->eye, ray);
                    const bool is_seen = weight > 0 && line.met[0].module == module;
                    const bool counts = is_seen && line_lor(hiding, &line) >= 0 &&
                                        eye_is_primary(hiding->eye, module, line.met[1].module);
                    if (is_borderline(hiding->eye, ray)) continue;
                    if (!is_same_pixel(&pixels[k], &line, is_seen) ||
                        fabs((double)pixels[k].weight - (counts ? weight : 0)) > 1e-5 * weight) {
                        fail_msg(
                            "%s, point %d, module %d, pixel %d: module %g crystal %g %g weight %g; lines say module %d "
                            "crystal %d %d weight %g",
                            hiding->arrangement->name, point, module, k, (double)pixels[k].module, (double)pixels[k].r,
                            (double)pixels[k].s, (double)pixels[k].weight, is_seen ? line.met[1].module : -1,
                            line.met[1].at[0], line.met[1].at[1], counts ? weight : 0);
                    }
                }
            }
    }
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    const struct kind *kind = NULL;
    for (int k = 0; k < length_of(kinds); k++) kind = strcmp(kinds[k].backend, backend) == 0 ? &kinds[k] : kind;
    if (kind == NULL || !fixture_backend_is_usable(backend)) return kind == NULL ? 1 : 77;
    struct CMUnitTest tests[] = {CASE(test_elements), CASE(test_pictures)};
    return test_run(NULL, backend, tests, length_of(tests), (void *)(uintptr_t)kind);
}
