/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a person wants back when the viewer is opened again, as a small YAML file
 * (docs/formats/sessions.md). */
#ifndef LR_IO_VIEW_SESSION_H
#define LR_IO_VIEW_SESSION_H

#include <lr/grid.h>
#include <lr/operator.h>

enum { LR_SESSION_RANGES = 8, LR_SESSION_NAME = 32 };

enum lr_session_mode {
    LR_SESSION_SCENE = 0,
    LR_SESSION_VOXEL,
    LR_SESSION_LOR,
    LR_SESSION_SENSITIVITY,
    LR_SESSION_RECON,
    LR_SESSION_DIRECT
};

/* Names as they stand in the file, NULL at the end. */
extern const char *const lr_session_modes[];

/* Kernels of a LOR's elements, likewise: the LOR itself, and the kernels of list mode. */
extern const char *const lr_session_kernels[];

/* Ends of a colour map that a person chose. */
struct lr_session_range {
    char name[LR_SESSION_NAME]; /* of what is coloured: "image" */
    double low, high;           /* low < high */
};

/* Zero fields, and NULL, are "not chosen"; has_ says so where zero means something. */
struct lr_view_session {
    char *scanner, *image, *mu, *data; /* owned: preset or path */
    lr_grid grid;                      /* size 0: none */
    bool has_camera;
    double eye_mm[3], target_mm[3], up[3];
    double view_angle_deg; /* 0 = orthographic */
    enum lr_session_mode mode;
    bool has_voxel;
    double point_mm[3];
    bool all_primaries; /* else: */
    int primary;
    lr_mode matrix_mode; /* auto = not chosen */
    int rays, samples, mu_steps;
    bool without_mu;
    int backend; /* in lr_session_backends */
    bool has_lor;
    int lor[6];     /* module, p, q, module, r, s */
    int lor_kernel; /* in lr_session_kernels: of the LOR, or of an event of list mode */
    bool has_tof;   /* of an event */
    double tof_mm;
    bool has_recon;
    int recon_family, recon_algorithm, recon_elements, recon_subsets; /* as the viewer counts them */
    int num_ranges;
    struct lr_session_range ranges[LR_SESSION_RANGES];
    bool has_shown;
    char shown_image[LR_SESSION_NAME]; /* on the slices: "image", "mu"; "" = none */
    bool slices[3];                    /* across x, y, z */
    double slices_mm[3];
    bool has_volume, hides_crystals, hides_lors;
    int window[2]; /* width and height in pixels */
};

/* Frees what it owns; zero is allowed. */
void lr_view_session_finish(struct lr_view_session *session);

/* True if a text begins as a session's file does. */
bool lr_view_session_recognises(const char *text);

/* Reads a file; *session is overwritten, finish it in any case (it is zero after an error).
 * errors: LR_BAD_INPUT with file, line and column: unknown or repeated keys, wrong types, another
 * version, numbers out of range; LR_FAILED when memory is short. */
lr_status lr_view_session_read(const char *path, struct lr_view_session *session, const lr_log *log);

/* Reads a session from text; `name` stands in place of the path in errors. */
lr_status lr_view_session_parse(const char *name, const char *text, int64_t text_bytes, struct lr_view_session *session,
                                const lr_log *log);

/* Writes beside the path and renames. Numbers read back equal.
 * errors: LR_USAGE for a session that would not be read back; LR_FAILED for the disk. */
lr_status lr_view_session_write(const char *path, const struct lr_view_session *session, const lr_log *log);

#endif
