/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files (ETSInitiative/PETSIRD) of any version, read by the schema that they carry: the
 * scanner in their header. Memory: at most the header's own bytes, and a byte per pair of modules,
 * at most LR_PETSIRD_MAX_MASK; crystals are counted, and
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

/* Modules of one type: the box of a crystal, the crystals' places in a module, and the modules' places. Places are
 * rigid transformations, the rows of [R | t] in mm. */
struct lr_petsird_type {
    float corners_mm[8][3];
    int64_t num_elements, num_modules;
    double per_element;    /* 1 / num_elements */
    float (*elements)[12]; /* owned [num_elements] */
    float (*modules)[12];  /* owned [num_modules] */
    int64_t first_crystal; /* in the file's order */
    int64_t num_energies;  /* detection bins per element */
    double per_energy;     /* 1 / num_energies */
    double energy_kev[2];
    float *efficiencies; /* owned [num_efficiencies], of detection bins; NULL = not given */
    int64_t num_efficiencies;
};

/* Edges of the time-of-flight bins of two module types, and their pairs of modules that are out of coincidence. Newer
 * files have the lower triangle only: [a][b] for a >= b. */
struct lr_petsird_pair {
    int num_edges; /* 0 = not given */
    float *edges_mm;
    float *middles_mm;       /* owned [num_edges - 1] of the bins; NULL = there are none */
    double resolution_mm;    /* FWHM; 0 = not given */
    int64_t rows, columns;   /* of the mask; 0 = there is none */
    unsigned char *excluded; /* owned [rows][columns]: 0 = not given, 1 = excluded, 2 = allowed */
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
    char version[32];            /* "0.9.1", the last one if several share the schema; "other" */
    char name[64];               /* of the scanner */
    int num_types;
    struct lr_petsird_type *types;   /* owned */
    struct lr_petsird_type *current; /* the type that lr_petsird_open is reading */
    struct lr_petsird_pair *pairs;   /* owned [num_types][num_types] */
    int64_t num_crystals;
    struct lr_petsird_range bin_efficiencies, pair_efficiencies;
    struct lr_keyed_line notes[LR_PETSIRD_MAX_NOTES]; /* fields that the model lacks */
    char noted[LR_PETSIRD_MAX_NOTES][16];             /* their values */
    int num_notes;
    bool odd_resolutions;               /* their table has too many entries, so that none is known */
    const struct lr_yardl_type *blocks; /* type of the stream that follows the header */
};

/* Opens a file and reads its header; the next value of its input is the first time block. log and
 * path must outlive it. errors: LR_BAD_INPUT, LR_FAILED; lr_petsird_close must follow in any case. */
lr_status lr_petsird_open(struct lr_petsird *petsird, const char *path, const lr_log *log);
void lr_petsird_close(struct lr_petsird *petsird);

/* Corners of a crystal in the order of the file, after both transformations; crystals are counted
 * type by type, module by module, element by element. */
void lr_petsird_corners(const struct lr_petsird *petsird, int64_t crystal, double corners_mm[8][3]);

/* The mean of the corners. */
void lr_petsird_centre(const struct lr_petsird *petsird, int64_t crystal, double centre_mm[3]);

/* Type of a crystal, and its module, counted within the type. */
int lr_petsird_type_of(const struct lr_petsird *petsird, int64_t crystal, int64_t *module);

/* The time-of-flight bins of events of two types: the bins of [a][b] with the sign 1, or else the bins of [b][a],
 * whose places are mirrored, with the sign -1. Fewer than two bins mean no time of flight. */
const struct lr_petsird_pair *lr_petsird_tof(const struct lr_petsird *petsird, const int types[2], double *sign);

/* The one time resolution of all pairs of types that have time of flight; 0 if there is none, or if they differ.
 * differ_ps (NULL is allowed): gets the smallest and largest if they differ (a missing one is 0); else 0 and 0. */
double lr_petsird_common_resolution_ps(const struct lr_petsird *petsird, double differ_ps[2]);

extern const struct lr_known_keys lr_petsird_keys;

/* Notes a field, or a kind of time block, with its value: a number, "given", or "none". */
void lr_petsird_note(struct lr_petsird *petsird, const char *name, const char *value);

/* Logs what the notes mean, by lr_petsird_keys, and clears them. */
lr_status lr_petsird_log_notes(struct lr_petsird *petsird);

bool lr_petsird_has_mask(const struct lr_petsird *petsird);

/* True if the file's mask allows the coincidence of two modules, counted within their types, or does not cover them. */
bool lr_petsird_allows(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2]);

/* The scanner of a header, by lr_scanner_from_crystals, with the coincidence rule that is equivalent to the file's
 * mask of modules, if there is one. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner(const struct lr_petsird *petsird);

/* Finds the crystals of a file in a scanner: numbers[num_crystals] get the scanner's number, or -1, with a warning, if
 * the scanner has no crystal within 0.1 mm. errors: LR_BAD_INPUT if none is found; LR_FAILED if memory runs out. */
lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers);

/* Reads one number for each crystal of a scanner, like lr_crystal_values_read: the efficiencies of the file's detection
 * bins, averaged over the energies of an element. errors: LR_BAD_INPUT if the file, or a crystal, has none. */
lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log);

/* True if time-of-flight bins, resolutions or energy windows differ between types. */
bool lr_petsird_has_kinds(const struct lr_petsird *petsird);

/* Fills in the time of flight and energies that all events of a file have in common; properties that differ between
 * types of modules stay 0, and are filled in as kinds: the kind of a crystal is its type of modules.
 * numbers[num_crystals]: of the file's crystals in a scanner with `count` crystals, -1 = the scanner lacks the crystal;
 * NULL is allowed if there are no kinds. errors: LR_FAILED if memory runs out; finish the info in any case. */
lr_status lr_petsird_fill_info(const struct lr_petsird *petsird, const int32_t *numbers, int count,
                               lr_events_info *info);

/* True if a file is PETSIRD by its name or its first bytes. */
bool lr_petsird_recognises(const struct lr_file_head *head);

/* Reads the scanner of a file. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner_read(const char *path, const lr_log *log);

/* --- the schemas that are written (assets/petsird) --- */

/* The text of a schema, zero terminated; NULL for another version than "0.9.1", "0.10.0" and "0.12.0". */
const char *lr_petsird_schema_text(const char *version);

#endif
