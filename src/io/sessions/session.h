/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sessions: small YAML files from which the viewer restores its state (docs/formats/sessions.md). */
#pragma once

#include <lr/grid.h>
#include <lr/operator.h>

enum { LR_SESSION_RANGES = 8, LR_SESSION_NAME = 32 };

enum lr_session_mode {
    LR_SESSION_SCENE = 0,
    LR_SESSION_VOXEL,
    LR_SESSION_LOR,
    LR_SESSION_SENSITIVITY,
    LR_SESSION_RECON,
    LR_SESSION_DIRECT,
    LR_SESSION_MEASURE
};

/* Names in the file, NULL at the end. */
extern const char *const lr_session_modes[];

/* Names of the panes in the middle of the window, and names of the ways to combine two images; NULL at the end. */
extern const char *const lr_session_panes[], *const lr_session_mixes[];

/* Names of the ways to compute a LOR's elements, NULL at the end: first the matrix row of the LOR, then the kernels of
 * list mode. */
extern const char *const lr_session_kernels[];

/* Limits of a colour map, chosen by the user. */
struct lr_session_range {
    char name[LR_SESSION_NAME]; /* name of the coloured values: "image" */
    double low, high;           /* low < high */
};

/* The state of the viewer. A field that is zero or NULL was not chosen by the user. If a has_ field is true, the fields
 * that belong to it were chosen, even if they are zero. */
struct lr_view_session {
    char *scanner, *image, *mu, *second, *data; /* owned: preset name or path */
    lr_grid grid;                               /* size 0 = none */
    bool has_camera;
    double eye_mm[3], target_mm[3], up[3];
    double view_angle_deg; /* 0 = orthographic */
    enum lr_session_mode mode;
    bool has_voxel;
    double point_mm[3];
    bool all_primaries;
    int primary;         /* used if all_primaries is false */
    lr_mode matrix_mode; /* auto = not chosen */
    int rays, samples, mu_steps;
    bool without_mu;
    int backend; /* index in lr_session_backends */
    bool has_lor;
    int lor[6];     /* module, p, q of one crystal; module, r, s of the other */
    int lor_kernel; /* index in lr_session_kernels, for a LOR or a list-mode event */
    bool has_tof;   /* the event has time of flight */
    double tof_mm;
    bool has_recon;
    int recon_family, recon_algorithm, recon_elements, recon_subsets; /* recon_subsets: a number; the others: indices of
                                                                         names */
    int num_ranges;
    struct lr_session_range ranges[LR_SESSION_RANGES];
    bool has_shown;
    char shown_image[LR_SESSION_NAME]; /* image on the slices: "image", "mu"; "" = none */
    bool slices[3];                    /* slices across x, y, z */
    double slices_mm[3];
    bool has_volume, hides_crystals, hides_lors;
    int panes;      /* index in lr_session_panes */
    int mix;        /* index in lr_session_mixes: how the second image is combined */
    double opacity; /* opacity of the second image, 0 .. 1 */
    int window[2];  /* width and height in pixels */
};

/* Frees what the session owns. A struct of zeros is allowed. */
void lr_view_session_finish(struct lr_view_session *session);

/* True if a text begins like a session file. */
bool lr_view_session_recognises(const char *text);

/* Reads a file. *session is overwritten, and must be finished even after an error. errors: LR_BAD_INPUT, with file,
 * line and column, for unknown or repeated keys, wrong types, another version, and numbers out of range; LR_FAILED if
 * memory runs out. */
lr_status lr_view_session_read(const char *path, struct lr_view_session *session, const lr_log *log);

/* Writes a file. All numbers are read back exactly. errors: LR_USAGE for a session that could not be read back;
 * LR_FAILED if writing fails. */
lr_status lr_view_session_write(const char *path, const struct lr_view_session *session, const lr_log *log);
