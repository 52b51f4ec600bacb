/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_DOCTOR_H
#define LR_DOCTOR_H

#include <lr/grid.h>
#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The geometry doctor: examines a scanner's description, even one that lr_scanner_create would refuse, and lists
 * what is probably wrong, why, and what to do. */

/* A scanner as described. Plain data; nothing in it has been checked. Counts and sizes are
 * positive and numbers finite; everything else may be wrong. All pointers of `params` belong to
 * the draft, and params.log is NULL. */
typedef struct lr_scanner_draft {
    lr_scanner_params params; /* a module's normal (0, 0, 0) = not given */
    double axial_length_mm;   /* published axial length; 0 = not given */
} lr_scanner_draft;

/* The draft of a scanner that is there. errors: NULL when memory is short. */
LR_API lr_scanner_draft *lr_scanner_draft_create(const lr_scanner *scanner, const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_scanner_draft_destroy(lr_scanner_draft *draft);

typedef enum lr_finding_kind {
    LR_FINDING_ARC = 0,     /* crystals around against the circumference */
    LR_FINDING_RADIUS,      /* a diameter in place of the radius, or half of it */
    LR_FINDING_UNITS,       /* cm or inch in place of mm, ns in place of ps, 1/cm of 1/mm */
    LR_FINDING_OVERLAP,     /* modules within each other */
    LR_FINDING_GAP,         /* a module seems to be missing, or to stand askew */
    LR_FINDING_LENGTH,      /* crystals along the axis against the axial length */
    LR_FINDING_NORMAL,      /* modules that look outwards */
    LR_FINDING_HANDEDNESS,  /* crystals or places counted the other way round */
    LR_FINDING_COINCIDENCE, /* rules against the field of view, the bore and the grid */
    LR_FINDING_SIZE,        /* numbers of LORs and the memory they take */
    LR_FINDING_REFUSED,     /* error that lr_scanner_create reports */
    LR_FINDING_HIDING       /* modules that stand before others, seen from the field of view */
} lr_finding_kind;

typedef enum lr_severity {
    LR_NOTE = 0, /* good to know */
    LR_SUSPECT   /* most likely an error */
} lr_severity;

typedef struct lr_finding {
    lr_severity severity;
    lr_finding_kind kind;
    int modules[2]; /* modules concerned; -1 = none, or all */
    char *sentence; /* suspicion and its reason */
    char *remedy;   /* what the user can do; "" = no advice */
} lr_finding;

typedef struct lr_diagnosis {
    int num_findings, num_suspects;
    lr_finding *findings; /* [num_findings] suspects first, each group in the order of the kinds */
} lr_diagnosis;

/* Examines a draft. Errors of one kind in many modules give three findings and one that counts the
 * rest. grid: what is to be reconstructed; NULL = not known.
 * errors: NULL when memory is short. */
LR_API lr_diagnosis *lr_scanner_examine(const lr_scanner_draft *draft, const lr_grid *grid, const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_diagnosis_destroy(lr_diagnosis *diagnosis);

/* "arc", "radius", "units", ... */
LR_API const char *lr_finding_kind_name(lr_finding_kind kind);

#ifdef __cplusplus
}
#endif

#endif
