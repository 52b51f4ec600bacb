/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Common parts of the geometry doctor (lr/doctor.h). Each check examines one thing and adds
 * findings. */
#pragma once

#include <lr/doctor.h>

/* The modules around the axis at the same height as the first module. */
struct lr_belt {
    int *modules; /* [count] sorted by the angle of their centres */
    int count;
    double radius_mm; /* median distance of the front planes from the axis */
    double width_mm;  /* sum of the modules' widths */
    bool closed;      /* true if the modules face the axis from all sides */
};

struct lr_examination {
    const lr_scanner_draft *draft;
    const lr_grid *grid; /* NULL = not known */
    lr_module *modules;  /* [draft->params.num_modules] with inward normals */
    struct lr_belt belt;
    double low_mm, high_mm; /* extent along z, to the outer edges of the front faces */
    lr_diagnosis *diagnosis;
    bool failed; /* true if memory was short, which was logged */
    const lr_log *log;
};

/* A finding without its message. */
struct lr_finding_head {
    lr_severity severity;
    lr_finding_kind kind;
    int modules[2];
    const char *remedy;
};

void lr_examination_add(struct lr_examination *examination, const struct lr_finding_head *head, const char *format, ...)
    LR_PRINTF(3, 4);

/* Largest number of findings of one kind that are listed with their own message. */
enum { LR_FINDINGS_SPELLED = 3 };

void lr_examine_arc(struct lr_examination *examination);
void lr_examine_units(struct lr_examination *examination);
void lr_examine_gaps(struct lr_examination *examination);
void lr_examine_overlaps(struct lr_examination *examination);
void lr_examine_length(struct lr_examination *examination);
void lr_examine_normals(struct lr_examination *examination);
void lr_examine_handedness(struct lr_examination *examination);
void lr_examine_rules(struct lr_examination *examination);
void lr_examine_grid(struct lr_examination *examination);
void lr_examine_size(struct lr_examination *examination);
