/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's projection data (.hs + .s) without arc correction and time of flight: the crystal pairs of each bin.
 * Formulas and sources: docs/formats/lor-data.md. */
#pragma once

#include "io/files/number_type.h"
#include "io/lor_data/sinogram.h"

/* Range of ring differences (ring of det2 minus ring of det1), and number of axial positions. */
struct lr_projdata_segment {
    int least, most, num_axial;
    int number; /* STIR's number; segment 0 has ring differences around 0 */
};

/* The bins of a file. */
struct lr_projdata {
    struct lr_sinogram_rings rings; /* place 0 is det 0 */
    double view_offset_deg;
    int views, mashing; /* views: number of views in the file; mashing: unmashed views that form one view */
    int first_t, num_t; /* tangential positions first_t .. first_t + num_t - 1 */
    int num_segments;
    struct lr_projdata_segment *segments; /* owned, in the file's order */
    bool by_view;                         /* true: bins are stored by view, then axial position; false: by axial
                                             position, then view */
};

/* The data file that a header describes. */
struct lr_projdata_file {
    char *data_path; /* owned by the caller */
    struct lr_number_type type;
    int64_t offset_bytes;
    double scale;
};

/* Makes bins for every LOR in coincidence: span 1, all views, by sinogram. errors: LR_BAD_INPUT for a scanner that is
 * not made of full rings. */
lr_status lr_projdata_create(struct lr_projdata *projdata, const lr_lors *lors, const lr_log *log);

/* Reads the header at `path` for a scanner. errors: LR_BAD_INPUT if the header is damaged, belongs to another scanner,
 * is arc-corrected or has time of flight. */
lr_status lr_projdata_read(struct lr_projdata *projdata, struct lr_projdata_file *file, const char *path,
                           const lr_scanner *scanner, const lr_log *log);

/* Frees everything that the struct owns. A struct of zeros is allowed. */
void lr_projdata_finish(struct lr_projdata *projdata);

/* Returns the text of a header for float32 data in the file data_name; NULL if memory runs out. The caller frees the
 * text. */
char *lr_projdata_print(const struct lr_projdata *projdata, const lr_scanner *scanner, const char *data_name,
                        const lr_log *log);

/* Finds the bins that LORs in coincidence need. reach[0]: largest abs(t) of these LORs. reach[1]: their largest ring
   difference. */
void lr_projdata_reach(const struct lr_projdata *projdata, const lr_lors *lors, int reach[2]);

int64_t lr_projdata_num_bins(const struct lr_projdata *projdata);

/* Fills in the ring pairs of an axial position and returns their number. pairs: [rings->rings][2], {ring of det1, ring
 * of det2}. */
int lr_projdata_ring_pairs(const struct lr_projdata *projdata, const struct lr_projdata_segment *segment, int axial,
                           int (*pairs)[2]);

/* One bin, by its number in each direction. */
struct lr_projdata_bin {
    int segment, axial, view, t; /* segment: STIR's number */
};

/* The bin of a LOR in data of span 1 without mashing. Returns false if the bin is outside the data. Also returns false
 * if there is no bin, because both crystals are at the same place around the ring, in different rings. */
bool lr_projdata_bin_of(const struct lr_projdata *projdata, const int32_t (*places)[2], const int32_t crystals[2],
                        struct lr_projdata_bin *bin);

/* Place around the ring and ring number of each crystal: [num_crystals][2], owned by the caller; NULL if memory runs
 * out. */
int32_t (*lr_projdata_places(const struct lr_projdata *projdata, const lr_scanner *scanner, const lr_log *log))[2];
