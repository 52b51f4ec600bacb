/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The text header of Siemens list mode: lines "key:=value" after "!INTERFILE". */
#ifndef LR_IO_SIEMENS_HEADER_H
#define LR_IO_SIEMENS_HEADER_H

#include "io/files/keyed_text.h"

#include <lr/log.h>

/* What a header says of the words; -1 where it says nothing. */
struct lr_siemens_header {
    char *path; /* owned; NULL = there is no header */
    int64_t word_bits, axial_compression, max_ring_difference;
    int64_t bins, views, rings; /* tangential bins, views of a sinogram, crystal rings */
    int64_t tof_bins, offset_bytes, num_words;
};

extern const struct lr_known_keys lr_siemens_keys;

/* Reads the header at `path`, or, where that is NULL, the one beside the events: EVENTS.hdr, or the
 * one file of that folder with ".hdr" in its name whose `name of data file` is the events'. Finding
 * none is no error: header->path stays NULL.
 * errors: LR_BAD_INPUT for a missing file, one that is no list-mode header, or several of them. */
lr_status lr_siemens_header_read(const char *path, const char *events, struct lr_siemens_header *header,
                                 const lr_log *log);

/* Zero is allowed. */
void lr_siemens_header_finish(struct lr_siemens_header *header);

#endif
