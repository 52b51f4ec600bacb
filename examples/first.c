/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Computes the counts of a hot-rod phantom in the GE eXplore Vista DR, and reconstructs the image
 * by three iterations of OSEM. */
#include <lr/lr.h>

#include <stdio.h>

static void say(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)user, (void)status;
    if (level >= LR_LOG_WARNING) {
        fprintf(stderr, "%s\n", sentence);
    }
}

static double sum_of(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += values[k];
    return sum;
}

int main(void)
{
    const lr_log log = {.write = say};
    lr_scanner *scanner = lr_scanner_read("ge-explore-vista-dr", &log);
    lr_lors *lors = lr_lors_create(scanner, &log);
    const lr_grid grid = lr_grid_centred((int[]){20, 20, 4}, (double[]){1.9, 1.9, 1.9});
    lr_image *image = lr_phantom_create(&(lr_phantom_params){"derenzo", .log = &log}, &grid);
    lr_lor_data *counts = lr_lor_data_create(lors, &log);
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = lors, .grid = &grid, .log = &log});
    bool good = op != NULL && image != NULL && counts != NULL;
    if (good) {
        lr_vector x = lr_image_vector(image), y = lr_lor_data_vector(counts);
        const lr_osem_params params = {.op = op, .data = &y, .subsets = 4, .log = &log};
        const double emitted = sum_of(image->values, lr_grid_num_voxels(&grid));
        printf("A phantom of rods emits %.1f photon pairs in %s.\n", emitted, scanner->name);
        good = lr_operator_forward(op, NULL, &x, &y) == LR_OK;
        printf("Both photons of %.1f of them meet crystals, in %lld LORs.\n", sum_of(counts->values, lors->count),
               (long long)lors->count);
        good = good && lr_osem(&params, &x) == LR_OK;
        printf("The image made of these counts, first.nii.gz, has %.1f: it should be within 2 %% of %.1f.\n",
               sum_of(image->values, lr_grid_num_voxels(&grid)), emitted);
    }
    good = good && lr_image_write("first.nii.gz", image, &log) == LR_OK;
    lr_lor_data_destroy(counts);
    lr_image_destroy(image);
    lr_operator_destroy(op);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return good ? 0 : 1;
}
