/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files (ETSInitiative/PETSIRD) of any version: the scanner in their header. A file is read by the schema
 * that it carries. Memory: at most the size of the header, and one byte per pair of modules, up to
 * LR_PETSIRD_MAX_MASK. Crystals are counted before they are listed (300 bytes each); a file with more than
 * LR_PETSIRD_MAX_CRYSTALS is refused. */
#pragma once

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

/* Modules of one type: the box of a crystal, the poses of crystals in a module, and the poses of modules. A pose is a
 * rigid transformation: the rows of [R | t], in mm. */
struct lr_petsird_type {
    float corners_mm[8][3];
    int64_t num_elements, num_modules;
    double per_element;    /* 1 / num_elements */
    float (*elements)[12]; /* owned [num_elements] */
    float (*modules)[12];  /* owned [num_modules] */
    int64_t first_crystal; /* number of the type's first crystal in the file */
    int64_t num_energies;  /* detection bins per element */
    double per_energy;     /* 1 / num_energies */
    double energy_kev[2];
    float *efficiencies; /* owned [num_efficiencies], one per detection bin; NULL = not given */
    int64_t num_efficiencies;
};

/* Time-of-flight bins of two module types a and b, and the mask of those pairs of their modules that are out of
 * coincidence. Newer files have only the pairs of types [a][b] with a >= b. */
struct lr_petsird_pair {
    int num_edges; /* 0 = not given */
    float *edges_mm;
    float *middles_mm;       /* owned [num_edges - 1], middles of the bins; NULL = no bins */
    double resolution_mm;    /* FWHM; 0 = not given */
    int64_t rows, columns;   /* size of the mask; 0 = no mask */
    unsigned char *excluded; /* owned [rows][columns]: 0 = not given, 1 = excluded, 2 = allowed */
};

/* Smallest and largest of a set of numbers. */
struct lr_petsird_range {
    int64_t count;
    double low, high;
};

struct lr_petsird {
    struct lr_yardl_input *input;
    struct lr_yardl_schema *schema;
    const char *path;
    const lr_log *log;
    struct lr_watched_log watch; /* log of `input` and `schema` */
    char version[32];            /* last version with this schema, such as "0.9.1"; "other" = the schema is not known */
    char name[64];               /* name of the scanner */
    int num_types;
    struct lr_petsird_type *types;   /* owned */
    struct lr_petsird_type *current; /* the type that lr_petsird_open is reading */
    struct lr_petsird_pair *pairs;   /* owned [num_types][num_types] */
    int64_t num_crystals;
    struct lr_petsird_range bin_efficiencies, pair_efficiencies;
    struct lr_keyed_line notes[LR_PETSIRD_MAX_NOTES]; /* the fields that lr_petsird_note has noted */
    char noted[LR_PETSIRD_MAX_NOTES][16];             /* values of these fields */
    int num_notes;
    bool odd_resolutions;               /* the table of resolutions has too many entries, so no resolution is known */
    const struct lr_yardl_type *blocks; /* type of the stream that follows the header */
};

/* Opens a file and reads its header. petsird->input then stands before the first time block. log and path must outlive
 * the file. errors: LR_BAD_INPUT, LR_FAILED. lr_petsird_close must follow in any case. */
lr_status lr_petsird_open(struct lr_petsird *petsird, const char *path, const lr_log *log);
void lr_petsird_close(struct lr_petsird *petsird);

/* Corners of a crystal in the file's order, after both transformations. Crystals are counted by type, then by module,
 * then by element. */
void lr_petsird_corners(const struct lr_petsird *petsird, int64_t crystal, double corners_mm[8][3]);

/* The mean of the corners. */
void lr_petsird_centre(const struct lr_petsird *petsird, int64_t crystal, double centre_mm[3]);

/* Type of a crystal. *module: number of its module within the type. */
int lr_petsird_type_of(const struct lr_petsird *petsird, int64_t crystal, int64_t *module);

/* Time-of-flight bins of events of two types a and b. Gives the bins of [a][b] with the sign 1. If these bins are
 * missing, gives the bins of [b][a] with the sign -1, because the bins of [b][a] have mirrored positions. Fewer than
 * two bins mean no time of flight. */
const struct lr_petsird_pair *lr_petsird_tof(const struct lr_petsird *petsird, const int types[2], double *sign);

/* Properties on which the module types of a file agree or differ. */
struct lr_petsird_agreement {
    bool any_tof;         /* some pair has time of flight */
    bool tof, energies;   /* tof: all pairs have the same time-of-flight bins; energies: all types have one energy
                             window */
    double resolution_ps; /* resolution of all pairs with time of flight; 0 = none, or resolutions differ */
    double differ_ps[2];  /* smallest and largest resolution (a missing one counts as 0); both 0 if all are equal */
    bool has_kinds;       /* some module types have different bins, resolutions or energies */
};
struct lr_petsird_agreement lr_petsird_compare(const struct lr_petsird *petsird);

extern const struct lr_known_keys lr_petsird_keys;

/* Notes a field or a kind of time block, with its value: a number, "given" or "none". */
void lr_petsird_note(struct lr_petsird *petsird, const char *name, const char *value);

/* Logs the notes with their meaning from lr_petsird_keys, and clears them. */
lr_status lr_petsird_log_notes(struct lr_petsird *petsird);

bool lr_petsird_has_mask(const struct lr_petsird *petsird);

/* True if the file's mask allows the coincidence of two modules or does not cover them. Modules are counted within
 * their types. */
bool lr_petsird_allows(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2]);

/* The scanner of a header, made by lr_scanner_from_crystals. If the file has a mask of modules that is equivalent to a
 * coincidence rule, the scanner gets this rule. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner(const struct lr_petsird *petsird);

/* Finds the file's crystals in a scanner. numbers: [num_crystals], the scanner's number of each crystal; -1, with a
 * warning, if the scanner has no crystal within 0.1 mm. errors: LR_BAD_INPUT if no crystal is found; LR_FAILED if
 * memory runs out. */
lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers);

/* Warns if the crystals' edges differ by more than 0.1 mm between the file's own scanner and another one. numbers: of
 * lr_petsird_match, not all -1. */
void lr_petsird_warn_apart(const struct lr_petsird *petsird, const lr_scanner *scanner, const int32_t *numbers);

/* Reads one number per crystal of a scanner, like lr_crystal_values_read: the efficiencies of the file's detection
 * bins, averaged over the energies of an element. errors: LR_BAD_INPUT if the file or a crystal has no efficiencies. */
lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log);

/* Fills in the time of flight and the energies that all events of a file share. Properties that differ between module
 * types stay 0 and are filled in as kinds. The kind of a crystal is its module type. numbers: [num_crystals], number of
 * each crystal in a scanner with `count` crystals, -1 = missing; may be NULL if there are no kinds. errors: LR_FAILED
 * if memory runs out. Finish the info in any case. */
lr_status lr_petsird_fill_info(const struct lr_petsird *petsird, const int32_t *numbers, int count,
                               lr_events_info *info);

/* True if a file is PETSIRD by its name or its first bytes. */
bool lr_petsird_recognises(const struct lr_file_head *head);

/* Reads the scanner of a file. errors: NULL, logged. */
lr_scanner *lr_petsird_scanner_read(const char *path, const lr_log *log);

/* --- the schemas that are written (assets/petsird) --- */

/* The text of a schema, zero terminated; NULL if the version is not "0.9.1", "0.10.0" or "0.12.0". */
const char *lr_petsird_schema_text(const char *version);
