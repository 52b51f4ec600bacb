/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The inside of an operator, for the files of this folder and for tests that bring their own
 * backends. */
#ifndef LR_OPERATOR_FACADE_H
#define LR_OPERATOR_FACADE_H

#include "operator/backend.h"
#include "operator/factor_store.h"
#include "operator/filters.h"
#include "operator/psf.h"

struct lr_direct_family;
struct lr_listmode_family;

enum { LR_MAX_CHOICES = 8 };

/* A backend that can be asked for; "auto" chooses among them (operator/choose.h). */
struct lr_backend_choice {
    const char *name;
    bool has_exact;       /* whether it computes LR_MODE_EXACT */
    bool has_penetration; /* whether it can let crystals stop photons along their depth */
    bool is_reference;    /* right rather than quick */
    lr_status (*create)(const struct lr_backend_params *params, struct lr_backend *backend);
};

struct lr_operator {
    lr_operator_info info;
    lr_grid grid;
    struct lr_log_filter log_filter;           /* params.log points into it */
    struct lr_progress_filter progress_filter; /* params.progress points into it */
    struct lr_backend_params params;           /* checked, defaults replaced */
    struct lr_backend backend;
    char passed_over[2048]; /* why backends before it were; "" = none was */
    lr_lor_source factors;  /* get == NULL: none */
    struct lr_factor_store factor_store;
    struct lr_direct_family *direct;     /* owned; NULL = another family */
    struct lr_listmode_family *listmode; /* alike */
    struct lr_psf psf;
    float *sensitivity; /* [num_voxels] without the resolution, or NULL until it is asked for */
};

/* lr_operator_create over other backends than the built-in ones. choices: [num_choices], at most
 * LR_MAX_CHOICES; read during the call only. */
lr_operator *lr_operator_create_among(const lr_operator_params *params, const struct lr_backend_choice *choices,
                                      int num_choices);

#endif
