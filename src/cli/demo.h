/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The demo's parts: verb_demo.c runs it, demo_pictures.c draws it, demo_figures.c reports it. */
#ifndef LR_CLI_DEMO_H
#define LR_CLI_DEMO_H

#include "album.h"
#include "run_bar.h"
#include "shot.h"
#include <stdio.h>

/* Sizes of the demo, full or quick. */
struct demo_scale {
    int grid[3];
    double voxel_mm;
    double counts;
    int iterations, subsets;
    int shown[3]; /* iterations in the panel before the last */
};

struct demo {
    struct setup setup; /* of the reconstruction: scanner, LORs, grid, operator */
    const struct demo_scale *scale;
    bool quick;
    const char *folder;
    uint64_t seed;
    struct shot_note drawn; /* what drew the correspondence images */
    char drawn_by[32];      /* its backend's name */
    lr_image *truth;        /* phantom, as emissions per voxel */
    lr_image *sensitivity, *image;
    lr_lor_data *data;
    struct album panel;
    struct run_bar bar;
    lr_iteration last; /* without its image */
    double counts;     /* drawn */
    double simulate_seconds, matrix_seconds, pictures_seconds, recon_seconds, total_seconds;
    lr_operator_info info; /* of the reconstruction's operator; strings live as long as it */
};

/* Path of a file in the demo's folder. */
static inline const char *demo_path(const struct demo *demo, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", demo->folder, name);
    return path;
}

/* correspondence.png and the pictures on it: three voxels in false colour, their weights without
 * and with absorption by a cylinder of water as wide as the phantom. */
lr_status demo_correspondence(struct demo *demo);

/* Adds a slice to the panel: of activity, up to 1.2 times the phantom's largest, or, with a unit,
 * of its own range. */
lr_status demo_add_slice(struct demo *demo, const lr_image *image, const char *unit, const char *caption);
lr_status demo_write_panel(struct demo *demo);

/* figures.txt, and the same on stdout, as text or JSON. */
lr_status demo_report(const struct demo *demo);

#endif
