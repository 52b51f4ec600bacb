/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_LORS_H
#define LR_LORS_H

#include <lr/scanner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The lines of response of a scanner, numbered.
 *
 * A LOR is an unordered pair of crystals in two modules i < j. Pairs of modules that have a LOR in coincidence are
 * listed, sorted by (i, j). The list does not depend on an image grid. Within pair k, crystal a of module i and crystal
 * b of module j (numbers within the module, q * nu + p) have the LOR number
 *
 *     offsets[k] + a * crystals_of(j) + b
 *
 * so count = offsets[num_pairs] includes every crystal pair of the listed module pairs. Pairs that the coincidence
 * rules exclude are included, too; their matrix elements are zero. The columns of exported matrices and the values in
 * data files have this order.
 *
 * Histo-images, the data of the family direct (lr/direct.h), use the same struct. Then `scanner`, `pairs`, `first_pair`
 * and `masks` are NULL, each pair is a view, and each LOR is a voxel of its view. All voxels count as "in coincidence".
 * Voxels have no crystal numbers.
 *
 * Immutable; may be shared between threads. The scanner must outlive the struct. */
typedef struct lr_lors {
    const lr_scanner *scanner; /* NULL: histo-images */
    int64_t num_pairs;
    const int32_t (*pairs)[2]; /* [num_pairs] */
    const int64_t *offsets;    /* [num_pairs + 1] */
    int64_t count;
    const int32_t *first_pair;                /* [num_modules + 1] the pairs (i, j > i) are first_pair[i] to
                                                 first_pair[i + 1] - 1 */
    const struct lr_coincidence_masks *masks; /* internal, like the next field */
    const struct lr_angles *angles;
} lr_lors;

/* One LOR, by its modules and crystals. */
typedef struct lr_lor {
    int module_i, p, q; /* the lower module, and its crystal (p, q) */
    int module_j, r, s;
} lr_lor;

/* The LORs of a projection, and the order of their values. All zero: every LOR. lors != NULL: these LORs, ascending and
 * without repeats. pairs != NULL: all LORs of these module pairs (indices in lr_lors.pairs, ascending), one pair after
 * another. At most one of lors and pairs is set; the caller owns the arrays. If interleave > 1, only those LORs of the
 * pairs are selected whose lr_lors_turn is interleave_turn. The vector of values still has a value for every LOR of the
 * pairs. Values of LORs that are not selected are finite but have no meaning after a forward projection, and must be 0
 * before a back-projection (lr_selection_blank). */
typedef struct lr_selection {
    const int64_t *lors;
    int64_t num_lors;
    const int32_t *pairs;
    int64_t num_pairs;
    int interleave, interleave_turn;
} lr_selection;

/* Lists the LORs of a scanner. errors: NULL if no pair of modules is in coincidence, or if the tables of pairs would
 * take more than a quarter of the machine's memory. lr_lors_count finds the sizes without these tables. */
LR_API lr_lors *lr_lors_create(const lr_scanner *scanner, const lr_log *log);
/* Lists LORs like lr_lors_create, for scanners with very many modules. `progress` can stop the call; the result is then
 * NULL, without a message. */
LR_API lr_lors *lr_lors_create_watched(const lr_scanner *scanner, const lr_progress *progress, const lr_log *log);
/* Makes a layout of some module pairs of `all`, listed in part->pairs. In this layout, LORs of other pairs are not in
 * coincidence. The scanner must outlive the result; `all` need not. Not for histo-images.
 * errors: NULL, logged: LR_USAGE for no pairs, or a list that is not ascending; LR_FAILED. */
LR_API lr_lors *lr_lors_create_part(const lr_lors *all, const lr_selection *part, const lr_log *log);
/* Destroying NULL is allowed. */
LR_API void lr_lors_destroy(lr_lors *lors);

/* Numbers of module pairs and of LORs that lr_lors_create would list. lr_lors_count finds them without the tables.
 * errors: LR_BAD_INPUT when no pair of modules is in coincidence, or more than 2^31 pairs are. */
typedef struct lr_lors_size {
    int64_t num_pairs, num_lors;
} lr_lors_size;
/* Counts LORs and pairs of modules without making a table of them. errors: LR_CANCELLED; LR_FAILED if memory runs
 * out. */
LR_API lr_status lr_lors_count(const lr_scanner *scanner, const lr_progress *progress, lr_lors_size *size,
                               const lr_log *log);

/* The index of the pair of two modules, given in either order; -1 if the modules are equal or not in coincidence. */
LR_API int64_t lr_lors_pair(const lr_lors *lors, int module_a, int module_b);

/* The LOR of two crystals, given in either order by their numbers in the scanner; -1 if their modules are equal or have
 * no LOR in coincidence. The LOR itself may be out of coincidence. */
LR_API int64_t lr_lors_number(const lr_lors *lors, int crystal_a, int crystal_b);

/* Modules and crystals of a LOR, 0 <= lor < count. Histo-images: -1 in every field but module_i, the view. */
LR_API lr_lor lr_lors_describe(const lr_lors *lors, int64_t lor);

/* The numbers of a LOR's crystals in the whole scanner; the crystal of the lower module is first. Not for
 * histo-images. */
LR_API void lr_lors_crystals(const lr_lors *lors, int64_t lor, int32_t crystals[2]);

/* Returns true if this LOR is in coincidence. */
LR_API bool lr_lors_in_coincidence(const lr_lors *lors, int64_t lor);

/* The part to which a LOR belongs, 0 .. interleave - 1, if LORs are divided into parts by their angle. Crystal
 * positions around the axis are numbered through all modules. The angle of a LOR is half of the sum of its crystals'
 * two positions, modulo the number of positions, rounded down. LORs of one angle are nearly parallel, like a view of a
 * sinogram. Angles are assigned to the parts in turn. If this gives a part fewer than 12 angles, the assignment is
 * shifted by a step that depends on the axial rows of the LOR's two crystals, so that each part has LORs of more
 * angles. docs/method/common.md, "Subsets". Histo-images: -1. */
LR_API int lr_lors_turn(const lr_lors *lors, int64_t lor, int interleave);

/* One number per LOR, dense or sparse.
 * dense:  index == NULL, count == lors->count.
 * sparse: index[count] sorted, without repeats; LORs not listed are zero.
 * ownership: lr_lor_data_destroy frees data that the library returned, with their arrays. A caller may also fill in a
 * struct with the caller's own arrays; functions that take a const lr_lor_data * read these arrays without a copy. */
typedef struct lr_lor_data {
    int64_t count;
    int64_t *index; /* NULL = dense */
    float *values;  /* [count] */
} lr_lor_data;

/* Creates dense data of zeros for all LORs. errors: NULL, logged, if memory runs out. */
LR_API lr_lor_data *lr_lor_data_create(const lr_lors *lors, const lr_log *log);

/* Counts how often each LOR occurs in `events` (LOR numbers, any order; negative ones are
 * skipped). The result is sparse. */
LR_API lr_lor_data *lr_lor_data_bin(const int64_t *events, int64_t num_events, const lr_log *log);

/* Makes a dense copy of data. */
LR_API lr_lor_data *lr_lor_data_expand(const lr_lor_data *data, const lr_lors *lors, const lr_log *log);

/* Extracts data of the LORs in `part` from data of `all`; the result uses the numbering of `part`, which is a part
 * of `all`. Sparse data stay sparse. NULL, logged, if memory runs out. */
LR_API lr_lor_data *lr_lor_data_take(const lr_lor_data *data, const lr_lors *all, const lr_lors *part,
                                     const lr_log *log);

/* Destroying NULL is allowed. */
LR_API void lr_lor_data_destroy(lr_lor_data *data);

/* A list of LORs: numbers[0 .. count-1], ascending. If numbers is NULL: LORs first .. first + count - 1. */
typedef struct lr_lor_span {
    const int64_t *numbers;
    int64_t first, count;
} lr_lor_span;

/* One number per LOR, computed on demand, so that no array over all LORs (some 10^8) is needed. `get` fills
 * values[span->count]. `get` is called only from the thread that owns the operator, and may start other threads.
 * Functions that make sources are in lr/factors.h. */
typedef struct lr_lor_source {
    lr_status (*get)(void *user, const lr_lor_span *span, float *values);
    void *user; /* passed to `get`. A struct whose `get` is NULL stands for no source */
} lr_lor_source;

/* The results for all LORs of a span: modules and crystals (lr_lors_describe), crystal numbers in the whole scanner
 * (lr_lors_crystals), or end points in mm, which are the hit centres of the two crystals (lr_scanner_hit_centre).
 * Results: [span->count]. The span's numbers may be in any order. All processors are used. Not for histo-images.
 * errors: LR_USAGE, logged, for a number that is no LOR; LR_FAILED if memory runs out. */
LR_API lr_status lr_lor_span_describe(const lr_lors *lors, const lr_lor_span *span, lr_lor *described,
                                      const lr_log *log);
LR_API lr_status lr_lor_span_crystals(const lr_lors *lors, const lr_lor_span *span, int32_t (*crystals)[2],
                                      const lr_log *log);
LR_API lr_status lr_lor_span_ends(const lr_lors *lors, const lr_lor_span *span, double (*ends_mm)[2][3],
                                  const lr_log *log);

/* Finds LORs like lr_lors_number, for `count` pairs of crystals. numbers: [count]. All processors are used. */
LR_API void lr_lors_numbers(const lr_lors *lors, const int32_t (*crystals)[2], int64_t count, int64_t *numbers);

/* Number of values of a selection, including the values of interleaved LORs that are not selected. selection NULL: all
 * LORs. */
LR_API int64_t lr_selection_count(const lr_lors *lors, const lr_selection *selection);

/* Sets to 0 the values of interleaved LORs that are not selected. values: [lr_selection_count], in the selection's
 * order. */
LR_API void lr_selection_blank(const lr_lors *lors, const lr_selection *selection, float *values);

#ifdef __cplusplus
}
#endif

#endif
