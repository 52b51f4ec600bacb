/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR mode: a LOR as a column of the matrix. The tube of response of two crystals as an image, its profile along the
 * line, and the time-of-flight kernel on the line. */
#pragma once

#include "viewer/study/study.h"

struct tube_crystal {
    int module, p, q;
};

/* The ends of the LOR's line: the centres of the crystals' faces on the detection plane. Call tube_check first. */
void tube_ends(const lr_scanner *scanner, const struct tube_crystal crystals[2], double ends_mm[2][3]);

/* Finds the LOR of two crystals. errors, logged: LR_USAGE if a crystal does not exist; if both are in one module; if
 * the modules are not in coincidence; if coincidence rules exclude the LOR, whose elements are then 0. */
lr_status tube_check(const struct study_view *study, const struct tube_crystal crystals[2], int64_t *lor,
                     const lr_log *log);

/* The elements of a tube are either the elements of a LOR, or the elements of a list-mode event with one of the kernels
 * of list mode. */
enum tube_kernel {
    TUBE_LOR = 0, /* a LOR: probabilities of the family correspondence */
    TUBE_TUBE,    /* this and the next kernels: a list-mode event, with time of flight if requested */
    TUBE_LINE,
    TUBE_EXACT,
    TUBE_NUM_KERNELS
};

/* Zero fields mean the defaults of lr_operator_params. */
struct tube_request {
    struct tube_crystal crystals[2];
    enum tube_kernel kernel;
    bool has_tof;  /* events only */
    double tof_mm; /* distance from the line's middle, positive towards the second crystal, as in lr_event */
    lr_mode mode;  /* auto = exact */
    int rays;
    int samples;         /* N points in a voxel */
    const char *backend; /* NULL = "native", or "cpu" with a mu-map */
};

/* Values along the line from the first crystal to the second. t is the distance from the line's middle, mm. */
struct tube_profile {
    int count;
    double first_mm, step_mm; /* centre of bin 0, and width of a bin */
    const float *weight;      /* [count] sum of the tube's elements in each plane across the line */
    const float *kernel;      /* [count] time-of-flight kernel per mm, centred on t = 0 or on the event's tof_mm;
                                 NULL = none */
};

/* A result. task_runner.result points to the newest result. */
struct tube_result {
    struct tube_request request; /* the request, with R and N as they were used; backend is NULL */
    int64_t lor;
    bool has_mu;
    double ends_mm[2][3]; /* ends at the first and the second crystal */
    double length_mm;
    double sigma_mm;       /* sigma of the kernel; 0 = the scanner has no time of flight */
    const lr_image *image; /* the tube on the study's grid */
    int64_t num_voxels;    /* number of nonzero voxels */
    double sum, largest;
    double peak_mm; /* t of the profile's largest weight */
    struct tube_profile profile;
};

extern const struct task_kind tube_kind; /* argument of task_runner_init */

/* Requests a tube; the newest request replaces earlier ones. errors: those of tube_check. */
lr_status tube_ask(struct task_runner *runner, const struct study_view *study, const struct tube_request *request,
                   const lr_log *log);
