/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A program outside of the source tree. It has two modules without gaps face to face, and computes the sum of the
 * elements of the point midway on all their LORs, which is the solid angle of one module over 2 pi. It also reads and
 * writes a file of each kind, which links the libraries that a static liblr needs. */
#include <lr/lr.h>

#include <stdio.h>
#include <string.h>

static const lr_module modules[2] = {{.centre_mm = {0, 465, 0},
                                      .u = {1, 0, 0},
                                      .v = {0, 0, 1},
                                      .crystals = {9, 9},
                                      .pitch_mm = {4.3, 4.3},
                                      .face_mm = {4.3, 4.3},
                                      .depth_mm = 30},
                                     {.centre_mm = {0, -465, 0},
                                      .u = {1, 0, 0},
                                      .v = {0, 0, 1},
                                      .crystals = {9, 9},
                                      .pitch_mm = {4.3, 4.3},
                                      .face_mm = {4.3, 4.3},
                                      .depth_mm = 30}};

/* 4 atan(a b / (2 d sqrt(4 d^2 + a^2 + b^2))) / 2 pi, with a = b = 9 x 4.3 and d = 465. */
static const double expected = 1.100487169734e-3;

/* Writes the sum to NIfTI with gzip and reads it again; -1 if that failed. Also uses HDF5, PNG, YAML and EGL. */
static float through_files(lr_image *image, const lr_lors *lors)
{
    lr_lor_data *data = lr_lor_data_create(lors, NULL);
    lr_device devices[1];
    const uint8_t rgb[3] = {1, 2, 3};
    const bool written = lr_image_write("sum.nii.gz", image, NULL) == LR_OK &&
                         lr_lor_data_write("data.h5", lors, data, NULL) == LR_OK &&
                         lr_png_write("dot.png", rgb, (int[2]){1, 1}, NULL) == LR_OK;
    lr_scanner *preset = lr_scanner_read("ge-explore-vista-dr", NULL);
    lr_image *back = lr_image_read("sum.nii.gz", NULL);
    lr_lor_data *same = lr_lor_data_read("data.h5", lors, NULL);
    const bool read = preset != NULL && back != NULL && same != NULL && lr_device_list(devices, 1, NULL) >= 0;
    const float sum = written && read ? back->values[0] : -1.0f;
    lr_image_destroy(back);
    lr_scanner_destroy(preset);
    lr_lor_data_destroy(same);
    lr_lor_data_destroy(data);
    return sum;
}

int main(void)
{
    /* Code that uses every backend's libraries, including CUDA's, must link. */
    if (lr_direct_create(&(lr_direct_params){0}) != NULL) return 1;
    /* The plugin of OpenGL is found, with or without a driver. */
    lr_device device = {0};
    if (lr_device_list(&device, 1, NULL) != 0 && strstr(device.reason, "lr_gl.so") != NULL) return 1;
    lr_scanner *scanner = lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2});
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((int[3]){1, 1, 1}, (double[3]){1, 1, 1});
    lr_image *image = lr_image_create(&grid, NULL);
    lr_operator *op = lr_operator_create(&(lr_operator_params){
        .lors = lors, .grid = &grid, .backend = "cpu", .mode = LR_MODE_EXACT, .samples = {1, 1, 1}});
    if (op == NULL || image == NULL) return 2;
    lr_vector values = lr_image_vector(image);
    if (lr_operator_sensitivity(op, NULL, &values) != LR_OK) return 2;
    const float sum = through_files(image, lors);
    lr_operator_destroy(op);
    lr_image_destroy(image);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    printf("%s %.9g %.9g\n", lr_version(), (double)sum, expected);
    return sum > expected * 0.999999 && sum < expected * 1.000001 ? 0 : 1;
}
