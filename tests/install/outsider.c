/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A program outside of the source tree: two modules without gaps face to face, and what the point
 * midway gives to all their LORs, which is the solid angle of one module over 2 pi. */
#include <lr/lr.h>

#include <stdio.h>

static const lr_module modules[2] = {
    {{0, 465, 0}, {1, 0, 0}, {0, 0, 1}, {0}, {9, 9}, {4.3, 4.3}, {4.3, 4.3}, 30, 0, 0, 0},
    {{0, -465, 0}, {1, 0, 0}, {0, 0, 1}, {0}, {9, 9}, {4.3, 4.3}, {4.3, 4.3}, 30, 0, 0, 0}};

/* 4 atan(a b / (2 d sqrt(4 d^2 + a^2 + b^2))) / 2 pi, a = b = 9 x 4.3, d = 465. */
static const double expected = 1.100487169734e-3;

int main(void)
{
    lr_scanner *scanner =
        lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2});
    lr_lors *lors = lr_lors_create(scanner, NULL);
    const lr_grid grid = lr_grid_centred((int[3]){1, 1, 1}, (double[3]){1, 1, 1});
    lr_operator *op = lr_operator_create(&(lr_operator_params){
        .lors = lors, .grid = &grid, .backend = "cpu", .mode = LR_MODE_EXACT});
    float sum = 0;
    const lr_status status = op == NULL ? LR_FAILED : lr_operator_sensitivity(op, &sum);
    lr_operator_destroy(op);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    printf("%s %.9g %.9g\n", lr_version(), (double)sum, expected);
    return status == LR_OK && sum > expected * 0.999999 && sum < expected * 1.000001 ? 0 : 1;
}
