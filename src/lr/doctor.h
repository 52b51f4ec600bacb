/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_DOCTOR_H
#define LR_DOCTOR_H

#include <lr/grid.h>
#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The geometry doctor examines a scanner's description and lists probable errors, with reasons and remedies. The
 * description may be one that lr_scanner_create refuses. */

/* A scanner's description before it is checked. Counts and sizes are positive, and numbers are finite; everything else
 * may be wrong. The draft owns all pointers of `params`; params.log is NULL. */
typedef struct lr_scanner_draft {
    lr_scanner_params params; /* a module's normal (0, 0, 0) = not given */
    double axial_length_mm;   /* published axial length; 0 = not given */
    bool lists_modules;       /* the description lists its modules one by one, instead of a ring's numbers */
} lr_scanner_draft;

/* Makes the draft that describes an existing scanner. errors: NULL if memory runs out. */
LR_API lr_scanner_draft *lr_scanner_draft_create(const lr_scanner *scanner, const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_scanner_draft_destroy(lr_scanner_draft *draft);

/* Kinds of errors that the doctor looks for. */
typedef enum lr_finding_kind {
    LR_FINDING_ARC = 0,     /* crystals around the ring do not fit the circumference */
    LR_FINDING_RADIUS,      /* the radius is probably a diameter, or half of the true radius */
    LR_FINDING_UNITS,       /* probably cm or inch instead of mm, ns instead of ps, or 1/cm instead of 1/mm */
    LR_FINDING_OVERLAP,     /* modules overlap */
    LR_FINDING_GAP,         /* a module seems to be missing, displaced or turned */
    LR_FINDING_LENGTH,      /* crystals along the axis do not fit the axial length */
    LR_FINDING_NORMAL,      /* modules that face outwards */
    LR_FINDING_HANDEDNESS,  /* crystals or places are counted in the opposite direction */
    LR_FINDING_COINCIDENCE, /* coincidence rules do not fit the field of view, the bore or the grid */
    LR_FINDING_SIZE,        /* numbers of LORs and the memory they take */
    LR_FINDING_REFUSED,     /* error that lr_scanner_create reports */
    LR_FINDING_HIDING       /* modules that hide others from the field of view */
} lr_finding_kind;

/* The likelihood that a finding is an error. */
typedef enum lr_severity {
    LR_NOTE = 0, /* good to know */
    LR_SUSPECT   /* most likely an error */
} lr_severity;

/* A probable error of a scanner, or a remark. */
typedef struct lr_finding {
    lr_severity severity;
    lr_finding_kind kind;
    int modules[2]; /* modules with this error; -1 = none, or all */
    char *sentence; /* the probable error, and the reason for it */
    char *remedy;   /* what the user can do; "" = no advice */
    /* Filled by lr_scanner_locate (lr/io.h): */
    int line, column; /* place in the file of the key that this speaks of, from 1; 0 = not known */
    char *excerpt;    /* that line, and marks below the key: "\n    radius_mm: 4\n    ^~~~~~~~~"; NULL = not known */
} lr_finding;

/* The findings about a draft. */
typedef struct lr_diagnosis {
    int num_findings, num_suspects;
    lr_finding *findings; /* [num_findings] suspects first, each group in the order of the kinds */
} lr_diagnosis;

/* Examines a draft. If many modules have errors of one kind, there is a finding for each of the first three modules,
 * and one finding with the number of the other modules. grid: the grid of images to be reconstructed; NULL = not known.
 * errors: NULL if memory runs out. */
LR_API lr_diagnosis *lr_scanner_examine(const lr_scanner_draft *draft, const lr_grid *grid, const lr_log *log);

/* Examines a scanner's radius, numbers around the ring, units and coincidence rules alone, in less than a millisecond.
 * Suspicions include slips such as a diameter for the radius. errors: NULL if memory runs out. */
LR_API lr_diagnosis *lr_scanner_find_slips(const lr_scanner *scanner, const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_diagnosis_destroy(lr_diagnosis *diagnosis);

/* The name of a kind: "arc", "radius", "units", ... */
LR_API const char *lr_finding_kind_name(lr_finding_kind kind);

#ifdef __cplusplus
}
#endif

#endif
