/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Times what is computed per LOR when asked for: the figures of docs/performance.md.
 *   cmake --build BUILD --target bench_factors && BUILD/bench_factors */
#include <lr/lr.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* LORs asked for at a time, and how many such spans, spread over the scanner. */
enum { SPAN = 1 << 20, NUM_SPANS = 14 };

struct workload {
    const char *scanner; /* preset */
    int size[3];
    double voxel_mm[3];
    double half_mm[2]; /* of an ellipse of water along the whole map */
};

static const struct workload workloads[] = {
    {"ge-explore-vista-dr", {64, 64, 64}, {0.8, 0.8, 0.65}, {20, 20}},
    {"siemens-mmr", {172, 172, 127}, {2.086, 2.086, 2.031}, {80, 100}},
    {"siemens-mmr", {172, 172, 127}, {2.086, 2.086, 2.031}, {170, 120}},
};

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fill_water(const struct workload *work, lr_image *mu)
{
    for (int64_t v = 0; v < lr_grid_num_voxels(&mu->grid); v++) {
        double at[3];
        lr_grid_voxel_centre(&mu->grid, v, at);
        const double x = at[0] / work->half_mm[0], y = at[1] / work->half_mm[1];
        mu->values[v] = x * x + y * y < 1.0 ? 0.0096f : 0.0f;
    }
}

/* Nanoseconds per LOR in coincidence. */
static double time_source(const lr_lors *lors, lr_lor_source source, float *values)
{
    int64_t count = 0;
    double spent = 0.0;
    for (int64_t k = 0; k < NUM_SPANS; k++) {
        const int64_t first = lors->count / NUM_SPANS * k;
        const int64_t left = lors->count - first;
        const lr_lor_span span = {.first = first, .count = left < SPAN ? left : SPAN};
        const double start = seconds();
        if (source.get(source.user, &span, values) != LR_OK) return -1.0;
        spent += seconds() - start;
        for (int64_t n = 0; n < span.count; n++) count += values[n] > 0.0f;
    }
    return 1e9 * spent / (double)count;
}

static void run(const struct workload *work, int threads)
{
    lr_scanner *scanner = lr_scanner_read(work->scanner, NULL);
    lr_lors *lors = scanner != NULL ? lr_lors_create(scanner, NULL) : NULL;
    const lr_grid grid = lr_grid_centred(work->size, work->voxel_mm);
    lr_image *mu = lr_image_create(&grid, NULL);
    float *values = calloc(SPAN, sizeof(*values));
    lr_attenuation *attenuation = NULL;
    if (lors != NULL && mu != NULL && values != NULL) {
        fill_water(work, mu);
        attenuation = lr_attenuation_create(&(lr_attenuation_params){.lors = lors, .mu = mu, .threads = threads});
    }
    if (attenuation != NULL) {
        printf("%s, map of %d x %d x %d, water of %g x %g mm, threads %d (0 = all): %.0f ns a LOR\n", work->scanner,
               work->size[0], work->size[1], work->size[2], 2 * work->half_mm[0], 2 * work->half_mm[1], threads,
               time_source(lors, lr_attenuation_source(attenuation), values));
    }
    lr_attenuation_destroy(attenuation);
    free(values);
    lr_image_destroy(mu);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    for (size_t k = 0; k < sizeof(workloads) / sizeof(workloads[0]); k++) {
        run(&workloads[k], 1);
        run(&workloads[k], 0);
    }
    return 0;
}
