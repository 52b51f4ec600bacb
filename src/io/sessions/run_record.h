/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What `recon --json` told of the iterations of a run, for curves (docs/formats/json.md). */
#ifndef LR_IO_RUN_RECORD_H
#define LR_IO_RUN_RECORD_H

#include <lr/log.h>

#include <stdbool.h>

enum lr_run_curve { LR_RUN_LIKELIHOOD = 0, LR_RUN_ERROR, LR_RUN_CURVES };

/* Iterations of the run's image, or of one of its frames. */
struct lr_run_image {
    int count;                    /* may be 0 where there are several */
    int first;                    /* number of the first iteration */
    float *values[LR_RUN_CURVES]; /* owned [count]; NAN where the run did not tell */
    bool has[LR_RUN_CURVES];      /* whether any is told */
    float *seconds;               /* owned [count] since iterations began; they ascend */
};

struct lr_run_record {
    char name[64];               /* "osem, 7 subsets" */
    bool has_frames;             /* else there is one image */
    int num_images;              /* at least 1 */
    struct lr_run_image *images; /* owned [num_images] */
};

/* Zero is allowed. */
void lr_run_record_finish(struct lr_run_record *record);

/* Whether a file that begins so is one. */
bool lr_run_record_recognises(const char *text);

/* errors: LR_BAD_INPUT, with a sentence, for files that are no such record, have no iterations, or numbers
 * that are none; LR_FAILED without memory. The record is zero then. */
lr_status lr_run_record_read(const char *path, struct lr_run_record *record, const lr_log *log);

/* The same from text; `name` stands in place of the path. */
lr_status lr_run_record_parse(const char *name, const char *text, int64_t text_bytes, struct lr_run_record *record,
                              const lr_log *log);

/* Values of a curve at `count` times that are as far from each other, from the first to the last second, on
 * straight lines between iterations, of which there are some. */
void lr_run_image_by_seconds(const struct lr_run_image *image, enum lr_run_curve curve, int count, float *values);

#endif
