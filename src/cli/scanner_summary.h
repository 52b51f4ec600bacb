/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the scanner verbs say of a scanner. */
#ifndef LR_CLI_SCANNER_SUMMARY_H
#define LR_CLI_SCANNER_SUMMARY_H

#include "json.h"
#include "report.h"

#include <lr/lr.h>

/* What a person wants to know of a scanner at a glance. */
struct scanner_summary {
    double radius_mm[2]; /* least and greatest distance of a front face's centre from the axis */
    double axial_mm[2];  /* lowest and highest z of the front faces' corners */
    int64_t num_lors;    /* numbered ones */
    int64_t num_pairs;
    int num_layers; /* of crystals; 1 = blocks have none */
};

/* errors: LR_BAD_INPUT when nothing is in coincidence, LR_CANCELLED. */
lr_status scanner_summarise(const lr_scanner *scanner, struct report *report, struct scanner_summary *summary);

/* The keys of `scanner show --json`, into an open object. */
void scanner_summary_json(const lr_scanner *scanner, const struct scanner_summary *summary, struct json *json);

#endif
