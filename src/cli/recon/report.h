/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What came of a reconstruction: sentences, JSON and a picture. */
#ifndef LR_CLI_RECON_REPORT_H
#define LR_CLI_RECON_REPORT_H

#include "cli/recon/scheme.h"

/* One line about an iteration. */
void recon_report_iteration(struct recon_run *run, const lr_iteration *done);

/* Refuses images that nobody can want, and warns of those that are not finished or of another scale. */
lr_status recon_check_image(const struct recon_run *run);

/* Writes a PNG of three slices through the centre of the image's activity. */
lr_status recon_draw(const struct recon_run *run);

/* Prints a line or a JSON object on standard output; with frames JSON has them all at the end. */
void recon_report(const struct recon_run *run, bool stopped);
void recon_report_frames(const struct recon_run *run, const struct recon_frames *frames, bool stopped);

#endif
