/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Simulates the counts of a hot-rod phantom in the GE eXplore Vista DR, and reconstructs the image
 * by three iterations of OSEM. */
#include <lr/lr.h>

#include <stdio.h>

static void say(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)user, (void)status;
    if (level >= LR_LOG_INFO) {
        fprintf(stderr, "%s\n", sentence);
    }
}

int main(void)
{
    const lr_log log = {.write = say};
    lr_scanner *scanner = lr_scanner_read("ge-explore-vista-dr", &log);
    lr_lors *lors = lr_lors_create(scanner, &log);
    const lr_grid grid = lr_grid_centred((int[]){20, 20, 4}, (double[]){1.9, 1.9, 1.9});
    lr_image *image = lr_phantom_create(&(lr_phantom_params){"derenzo", .log = &log}, &grid);
    lr_lor_data *counts = lr_lor_data_create(lors, &log);
    lr_operator *op = lr_operator_create(
        &(lr_operator_params){.lors = lors, .grid = &grid, .store = LR_STORE_NO, .log = &log});
    bool good = op != NULL && image != NULL && counts != NULL;
    if (good) {
        lr_vector x = lr_image_vector(image), y = lr_lor_data_vector(counts);
        const lr_osem_params params = {.op = op, .data = &y, .subsets = 4, .log = &log};
        good = lr_operator_forward(op, NULL, &x, &y) == LR_OK && lr_osem(&params, &x) == LR_OK;
    }
    good = good && lr_image_write("first.nii.gz", image, &log) == LR_OK;
    lr_lor_data_destroy(counts);
    lr_image_destroy(image);
    lr_operator_destroy(op);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return good ? 0 : 1;
}
