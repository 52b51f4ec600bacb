/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files (ETSInitiative/PETSIRD), of any version, by the schema that they carry: what their
 * header says of the scanner. Memory: what is kept of the header takes at most its own bytes,
 * except for a byte per pair of modules, at most LR_PETSIRD_MAX_MASK; crystals are counted, and
 * refused above LR_PETSIRD_MAX_CRYSTALS, before any are listed (300 bytes each). */
#ifndef LR_IO_PETSIRD_H
#define LR_IO_PETSIRD_H

#include "base/log.h"
#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"
#include "io/files/yardl.h"

#include <lr/crystals.h>
#include <lr/events.h>

enum {
    LR_PETSIRD_MAX_CRYSTALS = 1 << 20,
    LR_PETSIRD_MAX_TYPES = 64,
    LR_PETSIRD_MAX_NOTES = 128,
    LR_PETSIRD_MAX_MASK = 1 << 26
};

/* Modules of one type: a box of crystal, its places in a module, the places of the modules. Rigid
 * transformations are the rows of [R | t], mm. */
struct lr_petsird_type {
    float corners_mm[8][3];
    int64_t num_elements, num_modules;
    double per_element;    /* 1 / num_elements */
    float (*elements)[12]; /* owned [num_elements] */
    float (*modules)[12];  /* owned [num_modules] */
    int64_t first_crystal; /* of this type, in the file's order */
    int64_t num_energies;  /* detection bins of an element */
    double per_energy;     /* 1 / num_energies */
    double energy_kev[2];
    float *efficiencies; /* owned [num_efficiencies], of detection bins; NULL = not given */
    int64_t num_efficiencies;
};

/* Edges of the time-of-flight bins of two module types, and which of their modules are out of coincidence. Files of
 * the lower triangle have [a][b] for a >= b only. */
struct lr_petsird_pair {
    int num_edges; /* 0 = not given */
    float *edges_mm;
    float *middles_mm;       /* owned [num_edges - 1] of bins; NULL = there are none */
    double resolution_mm;    /* FWHM; 0 = not given */
    int64_t rows, columns;   /* of the mask; 0 = there is none */
    unsigned char *excluded; /* owned [rows][columns]: 0 = not said, 1 = excluded, 2 = not */
};

/* Smallest and largest of some numbers. */
struct lr_petsird_range {
    int64_t count;
    double low, high;
};

struct lr_petsird {
    struct lr_yardl_input *input;
    struct lr_yardl_schema *schema;
    const char *path;
    const lr_log *log;
    struct lr_watched_log watch; /* of `input` and `schema` */
    char version[32];            /* "0.9.1", of a schema that several share the last; "other" */
    char name[64];               /* of the scanner */
    int num_types;
    struct lr_petsird_type *types; /* owned */
    struct lr_petsird_pair *pairs; /* owned [num_types][num_types] */
    int64_t num_crystals;
    struct lr_petsird_range bin_efficiencies, pair_efficiencies;
    struct lr_keyed_line notes[LR_PETSIRD_MAX_NOTES]; /* of fields that have no place in the model */
    char noted[LR_PETSIRD_MAX_NOTES][16];             /* their values */
    int num_notes;
    bool odd_resolutions;               /* their table has too many entries: none is known */
    const struct lr_yardl_type *blocks; /* type of the stream that follows the header */
};

/* Opens a file and reads its header; the input then stands before the time blocks. log and path
 * must outlive it. errors: LR_BAD_INPUT, LR_FAILED; lr_petsird_close must follow in any case. */
lr_status lr_petsird_open(struct lr_petsird *petsird, const char *path, const lr_log *log);
void lr_petsird_close(struct lr_petsird *petsird);

/* Corners of a crystal in the order of the file, after both transformations; crystals are counted
 * type by type, module by module, element by element. */
void lr_petsird_corners(const struct lr_petsird *petsird, int64_t crystal, double corners_mm[8][3]);

/* The mean of the corners. */
void lr_petsird_centre(const struct lr_petsird *petsird, int64_t crystal, double centre_mm[3]);

/* Type of a crystal, and its module within it. */
int lr_petsird_type_of(const struct lr_petsird *petsird, int64_t crystal, int64_t *module);

/* The time-of-flight bins of events of two types: those of [a][b] with the sign 1, or those of
 * [b][a], whose places are mirrored, with -1. At most one bin (two edges) is none. */
const struct lr_petsird_pair *lr_petsird_tof(const struct lr_petsird *petsird, const int types[2], double *sign);

/* The one time resolution of all pairs of types that have time of flight; 0 where there is none.
 * differ (NULL is allowed): the smallest and largest, where they are not the same (a missing one is
 * 0); else both 0. */
double lr_petsird_common_resolution_ps(const struct lr_petsird *petsird, double differ_ps[2]);

extern const struct lr_known_keys lr_petsird_keys;

/* Notes a field, or a kind of time block, with what it says: a number, "given", or "none". */
void lr_petsird_note(struct lr_petsird *petsird, const char *name, const char *value);

/* Logs what the notes mean, by the keys above, and forgets them. */
lr_status lr_petsird_tell_notes(struct lr_petsird *petsird);

bool lr_petsird_has_mask(const struct lr_petsird *petsird);

/* True if the file's mask lets two modules, counted within their types, be in coincidence, or says nothing of them. */
bool lr_petsird_allows(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2]);

/* The scanner of a header, by lr_scanner_from_crystals, with the coincidence rule that says the
 * same as the file's mask of modules, where one does. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner(const struct lr_petsird *petsird);

/* Finds the crystals of a file in a scanner: numbers[num_crystals], -1 for those that have none of its crystals
 * within 0.1 mm, which is a warning. errors: LR_BAD_INPUT where none is found; LR_FAILED if memory runs out. */
lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers);

/* One number for each crystal of a scanner, as lr_crystal_values_read: the efficiencies of a file's
 * detection bins, the mean of those of an element with several energies.
 * errors: LR_BAD_INPUT for a file without them, and where a crystal has none. */
lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log);

/* Fills in the time of flight and energies that all events of a file have in common; what differs
 * between types of modules stays 0. errors: LR_FAILED if memory runs out. */
lr_status lr_petsird_fill_info(const struct lr_petsird *petsird, lr_events_info *info);

/* True if time-of-flight bins, resolutions or energy windows differ between types. */
bool lr_petsird_has_kinds(const struct lr_petsird *petsird);

/* Fills in what differs, the kind of a crystal being its type of modules. numbers[num_crystals]: of
 * the file's crystals in a scanner with `count` crystals, -1 = it has none.
 * errors: LR_FAILED if memory runs out; finish the info in any case. */
lr_status lr_petsird_fill_kinds(const struct lr_petsird *petsird, const int32_t *numbers, int count,
                                lr_events_info *info);

/* True if a file is PETSIRD by its name or its first bytes. */
bool lr_petsird_recognises(const struct lr_file_head *head);

/* Reads the scanner of a file. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner_read(const char *path, const lr_log *log);

/* --- the schemas that are written (assets/petsird) --- */

/* Its text, zero terminated; NULL for another version than "0.9.1", "0.10.0" and "0.12.0". */
const char *lr_petsird_schema_text(const char *version);

#endif
