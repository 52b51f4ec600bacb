/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Times forward and back-projection without a stored matrix: the figures of docs/performance.md.
 *   cmake --build BUILD --target bench_projections && BUILD/bench_projections */
#include <lr/lr.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct workload {
    const char *scanner; /* preset; NULL = the cluster paper's pair of 32 x 32 crystals */
    double extent_mm;    /* edge of the cubic grid */
    int edge;            /* voxels along it */
    const char *backend;
    lr_mode mode;
};

static const struct workload workloads[] = {
    {NULL, 128, 128, "compute", LR_MODE_SAMPLED},
    {NULL, 128, 128, "compute", LR_MODE_EXACT},
    {NULL, 128, 32, "raster", LR_MODE_SAMPLED},
    {"ge-explore-vista-dr", 29, 64, "compute", LR_MODE_EXACT},
    {"ge-explore-vista-dr", 29, 64, "compute", LR_MODE_SAMPLED},
    {"ge-explore-vista-dr", 29, 16, "raster", LR_MODE_SAMPLED},
    {"siemens-mmr", 200, 32, "compute", LR_MODE_EXACT},
};

static void complain(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)user;
    (void)status;
    if (level >= LR_LOG_WARNING) {
        fprintf(stderr, "%s\n", sentence);
    }
}

static const lr_log stderr_log = {complain, NULL};

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static lr_scanner *create_pair(void)
{
    lr_module modules[2] = {{.centre_mm = {0, 465, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {32, 32},
                             .pitch_mm = {4.3, 4.3},
                             .face_mm = {4.3, 4.3},
                             .depth_mm = 30}};
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -465;
    return lr_scanner_create(&(lr_scanner_params){.name = "two modules of 32 x 32",
                                                  .modules = modules,
                                                  .num_modules = 2,
                                                  .log = &stderr_log});
}

/* Both directions twice; the second call counts, since the first compiles shaders. */
static void time_operator(lr_operator *op, const struct workload *workload)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    float *image = calloc((size_t)info->num_voxels, sizeof(float));
    float *data = calloc((size_t)info->num_lors, sizeof(float));
    double forward = 0, back = 0;
    for (int64_t v = 0; image && v < info->num_voxels; v++) {
        image[v] = 1.0f;
    }
    for (int round = 0; image && data && round < 2; round++) {
        const double start = seconds();
        lr_status status = lr_operator_forward(op, image, data);
        const double middle = seconds();
        status = status == LR_OK ? lr_operator_back(op, data, image) : status;
        forward = status == LR_OK ? middle - start : -1;
        back = seconds() - middle;
    }
    printf("%-28s %3d^3 %-8s %-8s forward %8.4f us/voxel, back %8.4f us/voxel on %s\n",
           info->lors->scanner->name, workload->edge, info->backend,
           workload->mode == LR_MODE_EXACT ? "exact" : "sampled",
           1e6 * forward / (double)info->num_voxels, 1e6 * back / (double)info->num_voxels,
           info->device);
    free(image);
    free(data);
}

static void run(const struct workload *workload)
{
    lr_scanner *scanner =
        workload->scanner ? lr_scanner_read(workload->scanner, &stderr_log) : create_pair();
    lr_lors *lors = scanner ? lr_lors_create(scanner, &stderr_log) : NULL;
    const double voxel_mm = workload->extent_mm / workload->edge;
    const lr_grid grid =
        lr_grid_centred((const int[3]){workload->edge, workload->edge, workload->edge},
                        (const double[3]){voxel_mm, voxel_mm, voxel_mm});
    lr_operator *op = NULL;
    if (lors != NULL) {
        op = lr_operator_create(&(lr_operator_params){.lors = lors,
                                                      .grid = &grid,
                                                      .backend = workload->backend,
                                                      .mode = workload->mode,
                                                      .samples = {1, 1, 1},
                                                      .store = LR_STORE_NO,
                                                      .log = &stderr_log});
    }
    if (op != NULL) {
        time_operator(op, workload);
    }
    lr_operator_destroy(op);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    for (size_t k = 0; k < sizeof(workloads) / sizeof(workloads[0]); k++) {
        run(&workloads[k]);
    }
    return 0;
}
