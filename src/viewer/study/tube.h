/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR mode: a column of the matrix. The tube of response of two crystals as an image, its profile
 * along the line, and the time-of-flight kernel on it. */
#ifndef LR_VIEWER_TUBE_H
#define LR_VIEWER_TUBE_H

#include "viewer/study/study.h"

struct tube_crystal {
    int module, p, q;
};

/* The crystals' face centres on the detection plane: where lines of the LOR end. Checked crystals
 * only. */
void tube_ends(const lr_scanner *scanner, const struct tube_crystal crystals[2], double ends_mm[2][3]);

/* The LOR of two crystals. errors: LR_USAGE, logged, for crystals that do not
 * exist, or are in the same module; for modules that are not in coincidence, and for LORs that the
 * coincidence rules exclude, whose elements are 0. */
lr_status tube_check(const struct study_view *study, const struct tube_crystal crystals[2], int64_t *lor,
                     const lr_log *log);

/* The source of the elements. */
enum tube_kernel {
    TUBE_LOR = 0, /* the LOR: probabilities of the family correspondence */
    TUBE_TUBE,    /* an event of list mode, by its kernels, with time of flight where it is asked for */
    TUBE_LINE,
    TUBE_EXACT,
    TUBE_NUM_KERNELS
};

/* Zero fields are defaults, those of lr_operator_params. */
struct tube_request {
    struct tube_crystal crystals[2];
    enum tube_kernel kernel;
    bool has_tof;  /* of an event */
    double tof_mm; /* as in lr_event: from the line's middle, positive towards the second crystal */
    double tof_ps; /* FWHM; 0 = the scanner's */
    lr_mode mode;  /* auto = exact */
    int rays;
    int samples; /* N points of a voxel */
    int mu_steps;
    bool without_mu;
    const char *backend; /* NULL = "native", with a mu-map "cpu" */
};

/* Along the line from the first crystal to the second; t = 0 in its middle. */
struct tube_profile {
    int count;
    double first_mm, step_mm; /* the middle of bin 0, and the width of bins */
    const float *weight;      /* [count] sum of the tube's elements in planes across the line */
    const float *kernel;      /* [count] time-of-flight kernel per mm about t = 0, of an event about
                                its tof_mm; NULL = none */
};

struct tube_result {
    struct tube_request request; /* with R, N and K filled in; backend is NULL */
    int64_t lor;
    bool has_mu;
    double ends_mm[2][3]; /* of the first crystal, and the second */
    double length_mm;
    double sigma_mm;       /* of the kernel; 0 = the scanner has no time of flight */
    const lr_image *image; /* the tube on the study's grid */
    int64_t num_voxels;    /* that are not zero */
    double sum, largest;
    double peak_mm; /* place along the line, as in the profile, of the profile's largest weight */
    struct tube_profile profile;
};

extern const struct task_kind tube_kind; /* for task_runner_init */

/* Asks for another tube; of several the newest wins. errors: those of tube_check. */
lr_status tube_ask(struct task_runner *runner, const struct study_view *study, const struct tube_request *request,
                   const lr_log *log);

/* The newest tube, until the next poll; NULL = none. */
const struct tube_result *tube_result(const struct task_runner *runner);

#endif
