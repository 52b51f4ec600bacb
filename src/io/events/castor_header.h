/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's data header (.Cdh): lines "key: value", '#' begins a comment (io/files/keyed_text.h). */
#ifndef LR_IO_CASTOR_HEADER_H
#define LR_IO_CASTOR_HEADER_H

#include "io/files/file_head.h"
#include "io/files/keyed_text.h"

#include <lr/log.h>

enum lr_castor_mode { LR_CASTOR_LIST, LR_CASTOR_HISTOGRAM };

enum { LR_CASTOR_MAX_TOF_BINS = 4096 };

struct lr_castor_header {
    char *data_path; /* owned: the .Cdf, found from the header's folder */
    char scanner[64];
    enum lr_castor_mode mode;
    int64_t num_events;
    double duration_s;
    bool has_attenuation, has_normalization, has_scatter, has_randoms, has_tof, has_kind;
    double tof_resolution_ps, tof_range_ps, tof_quantisation_ps, tof_bin_ps;
    int num_tof_bins; /* of a histogram, at least 1 */
};

extern const struct lr_known_keys lr_castor_header_keys;

/* Whether the first bytes of a file look like such a header. */
bool lr_castor_header_recognises(const struct lr_file_head *head);

/* errors: LR_BAD_INPUT, logged, for a file that is none, and for data that have no events as they
 * are understood here: normalization files, events of several lines, emission points. Finish it in
 * any case. */
lr_status lr_castor_header_read(const char *path, struct lr_castor_header *header, const lr_log *log);
void lr_castor_header_finish(struct lr_castor_header *header);

/* Bytes of an event in the data. */
int64_t lr_castor_event_bytes(const struct lr_castor_header *header);

#endif
