/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Views, kernels and operators from the command line, shared by the verbs `direct`. */
#pragma once

#include "cluster.h"

extern const struct cli_option direct_view_options[];   /* a set of views */
extern const struct cli_option direct_kernel_options[]; /* resolution and support */
extern const struct cli_option direct_device_options[]; /* backend, device, threads */

/* Options for the widths of radial models, for verbs that have --model. */
#define DIRECT_RADIAL_OPTIONS                                                                                          \
    "--radial-mm", "MM", "FWHM of invariant, and of linear at the centre; default 5.8", NULL                           \
    }                                                                                                                  \
    , {"--radial-edge-mm", "MM", "FWHM of linear at the edge", NULL},                                                  \
    {                                                                                                                  \
        "--edge-mm", "MM", "distance of the edge from the axis; default 288", NULL

extern const char *const direct_models[]; /* words of --model, indexed by lr_radial_model */

/* Names of the variants 1 and up; the default, variant 0, has no name. NULL at the end. */
extern const char *const direct_variant_names[];

#define DIRECT_VIEW_GROUP "views", direct_view_options
#define DIRECT_KERNEL_GROUP "kernel", direct_kernel_options
#define DIRECT_DEVICE_GROUP "device", direct_device_options

/* The data of a verb of the family direct. A struct of zeros is valid; direct_finish frees the data. */
struct direct_setup {
    struct setup grid; /* only report and grid are used */
    lr_view_set set;   /* the complete set */
    lr_direct_kernel kernel;
    lr_radial_profiles profiles; /* must not move, because the kernel may point to it */
    lr_operator *op;
};

/* Reads --azimuths, --tilts, --acceptance-deg. */
lr_status direct_read_views(struct direct_setup *setup, struct cli_args *args);

/* Reads --tof-ps, --model and the widths of the model. */
lr_resolution direct_read_widths(struct cli_args *args);

/* Reads the options of a kernel, and the file of --measured. direct_take_tof completes the kernel. */
lr_status direct_read_kernel(struct direct_setup *setup, struct cli_args *args);

/* Completes the kernel's time resolution. own_ps: that of the histo-images, which is the default for --tof-ps; 0 = not
 * known. Warns if --tof-ps differs from it. */
lr_status direct_take_tof(struct direct_setup *setup, struct cli_args *args, double own_ps);

/* Inputs of direct_open that are not options of the command line. A struct of zeros is valid. */
struct direct_work {
    const lr_view *views;
    int num_views;
    const lr_histo_images *factors; /* factors; NULL = all 1; must outlive the operator */
    const lr_progress *progress;    /* progress of projections; NULL = none */
    const struct cluster *cluster;  /* the ranks; NULL = one process */
};

/* Makes setup->op on setup->grid.grid and reports its device. The factors must have the same grid and views. */
lr_status direct_open(struct direct_setup *setup, struct cli_args *args, const struct direct_work *work);

void direct_finish(struct direct_setup *setup);
