/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/coincidence.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Slack of the field-of-view rule, mm. */
#define FIELD_OF_VIEW_TOLERANCE_MM 1e-9
/* Transaxial length below which a line is parallel to the axis, mm. */
#define PARALLEL_MM 1e-9
/* Largest transaxial part of an axis v that counts as parallel to z. */
#define UPRIGHT 1e-12

/* One stored set of bits: its hash, and its position in the array of words. */
struct stored_set {
    uint64_t hash;
    uint32_t offset, num_words; /* num_words = 0: free slot */
};

struct lr_mask_builder {
    const lr_scanner *scanner;
    const lr_log *log;
    bool stores;          /* true if masks are stored; false if pairs are only counted */
    double reach_mm;      /* half the field of view with its slack; < 0 = no limit */
    double (*centres)[3]; /* [num_crystals] centres of the crystals' volumes */
    bool *upright;        /* [num_modules] true if v is parallel to z */
    struct lr_coincidence_masks *masks;
    int64_t max_pairs, max_words;
    int64_t most_words;         /* largest number of words: what offsets can address, at most a quarter of the memory */
    struct stored_set *sets;    /* [max_sets] hash table with open addressing */
    int64_t num_sets, max_sets; /* max_sets is a power of two */
};

struct lr_mask_builder *lr_mask_builder_create(const lr_scanner *scanner, enum lr_masks masks, const lr_log *log)
{
    static const char *const what = "the coincidence masks";
    struct lr_mask_builder *builder = lr_alloc(1, sizeof(*builder), what, log);
    if (builder == NULL) return NULL;
    const double field = scanner->coincidence.field_of_view_mm;
    builder->scanner = scanner;
    builder->log = log;
    builder->stores = masks == LR_MASKS_STORED;
    builder->reach_mm = field > 0.0 ? 0.5 * field + FIELD_OF_VIEW_TOLERANCE_MM : -1.0;
    builder->max_sets = 64;
    const int64_t quarter = lr_physical_memory() / 4 / (int64_t)sizeof(*builder->masks->words);
    builder->most_words = quarter < UINT32_MAX ? quarter : UINT32_MAX;
    builder->sets = lr_alloc(builder->max_sets, sizeof(*builder->sets), what, log);
    builder->centres = lr_alloc(scanner->num_crystals, sizeof(*builder->centres), what, log);
    builder->upright = lr_alloc(scanner->num_modules, sizeof(*builder->upright), what, log);
    builder->masks = lr_alloc(1, sizeof(*builder->masks), what, log);
    if (builder->sets == NULL || builder->centres == NULL || builder->upright == NULL || builder->masks == NULL) {
        lr_mask_builder_destroy(builder);
        return NULL;
    }
    lr_scanner_crystal_centres(scanner, builder->centres);
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *v = scanner->modules[m].v;
        builder->upright[m] = fabs(v[0]) < UPRIGHT && fabs(v[1]) < UPRIGHT;
    }
    return builder;
}

/* True if the line through a and b passes the axis at a distance of at most `reach`. In x and y: |a x b| <= reach |b -
 * a|. */
static bool passes(const double a[3], const double b[3], double reach)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1];
    const double length2 = dx * dx + dy * dy;
    if (length2 < PARALLEL_MM * PARALLEL_MM) return a[0] * a[0] + a[1] * a[1] <= reach * reach;
    const double cross = a[0] * dy - a[1] * dx;
    return cross * cross <= reach * reach * length2;
}

static bool rings_allow(const lr_scanner *scanner, const lr_module *i, const lr_module *j, int q, int s)
{
    const int64_t difference = (int64_t)i->first_crystal_ring + q - ((int64_t)j->first_crystal_ring + s);
    const int largest = scanner->coincidence.max_ring_difference;
    return !scanner->coincidence.limits_ring_difference || llabs(difference) <= largest;
}

/* Reserves memory for a set of zero bits after the stored words; NULL if memory is short. The set is kept only if
 * store_set stores it. */
static uint32_t *new_set(struct lr_mask_builder *builder, int64_t num_bits)
{
    struct lr_coincidence_masks *masks = builder->masks;
    const int64_t needed = masks->num_words + (num_bits + 31) / 32;
    if (needed > builder->most_words) {
        lr_log_write(builder->log, LR_LOG_ERROR, LR_FAILED,
                     "the field of view's coincidence masks take more than %.3g GiB: split the tilted modules into "
                     "smaller ones or widen the field of view",
                     0x1p-28 * (double)builder->most_words);
        return NULL;
    }
    const struct lr_items items = {sizeof(*masks->words), "the coincidence masks", builder->log};
    if (lr_grow(&masks->words, &builder->max_words, needed, &items) != LR_OK) return NULL;
    uint32_t *set = masks->words + masks->num_words;
    memset(set, 0, (size_t)(needed - masks->num_words) * sizeof(*set));
    return set;
}

/* The slot of an equal set, or else the free slot for this set. */
static struct stored_set *find_slot(const struct lr_mask_builder *builder, uint64_t hash, const uint32_t *words,
                                    uint32_t num_words)
{
    for (uint64_t at = hash;; at++) {
        struct stored_set *slot = &builder->sets[at & (uint64_t)(builder->max_sets - 1)];
        if (slot->num_words == 0 ||
            (slot->hash == hash && slot->num_words == num_words &&
             memcmp(builder->masks->words + slot->offset, words, num_words * sizeof(*words)) == 0))
            return slot;
    }
}

/* Stores the set that new_set returned, unless an equal set is already stored. */
static lr_status store_set(struct lr_mask_builder *builder, int64_t num_bits, uint32_t *offset)
{
    if (!builder->stores) return LR_OK;
    if (2 * (builder->num_sets + 1) > builder->max_sets) {
        struct stored_set *old = builder->sets;
        const int64_t old_max = builder->max_sets;
        struct stored_set *sets = lr_alloc(2 * old_max, sizeof(*sets), "the coincidence masks", builder->log);
        if (sets == NULL) return LR_FAILED;
        builder->sets = sets;
        builder->max_sets = 2 * old_max;
        for (int64_t k = 0; k < old_max; k++)
            if (old[k].num_words > 0)
                *find_slot(builder, old[k].hash, builder->masks->words + old[k].offset, old[k].num_words) = old[k];
        free(old);
    }

    struct lr_coincidence_masks *masks = builder->masks;
    const uint32_t num_words = (uint32_t)((num_bits + 31) / 32);
    const uint32_t *words = masks->words + masks->num_words;
    /* FNV-1a over words, with a final mix so that the low bits select the slot. */
    uint64_t hash = LR_HASH_BEGIN;
    for (int64_t k = 0; k < num_words; k++) hash = lr_hash_add(hash, words[k]);
    hash ^= hash >> 32;
    struct stored_set *slot = find_slot(builder, hash, words, num_words);
    if (slot->num_words == 0) {
        *slot = (struct stored_set){hash, (uint32_t)masks->num_words, num_words};
        builder->num_sets++;
        masks->num_words += num_words;
    }
    *offset = slot->offset;
    return LR_OK;
}

static lr_status append_pair(struct lr_mask_builder *builder, struct lr_pair_mask mask)
{
    struct lr_coincidence_masks *masks = builder->masks;
    if (!builder->stores) return LR_OK;
    const struct lr_items items = {sizeof(*masks->pairs), "the coincidence masks", builder->log};
    LR_TRY(lr_grow(&masks->pairs, &builder->max_pairs, masks->num_pairs + 1, &items));
    masks->pairs[masks->num_pairs++] = mask;
    return LR_OK;
}

static void set_bit(uint32_t *set, int64_t n)
{
    set[n / 32] |= (uint32_t)1 << (n % 32);
}

/* Adds a mask of columns and rings. The transaxial position of a crystal in an upright module depends on its column
 * only. */
static lr_status add_separable_mask(struct lr_mask_builder *builder, int i, int j, bool *any)
{
    const lr_scanner *scanner = builder->scanner;
    const lr_module *module_i = &scanner->modules[i], *module_j = &scanner->modules[j];
    const double(*centre_i)[3] = (const double(*)[3])builder->centres + scanner->first_crystal[i];
    const double(*centre_j)[3] = (const double(*)[3])builder->centres + scanner->first_crystal[j];
    const int nu_i = module_i->crystals[0], nu_j = module_j->crystals[0];
    const int nv_i = module_i->crystals[1], nv_j = module_j->crystals[1];
    const int64_t columns = (int64_t)nu_i * nu_j, rings = (int64_t)nv_i * nv_j;
    struct lr_pair_mask mask = {.kind = LR_MASK_SEPARABLE};

    /* Bit p * nu_j + r is 1 if the crystal columns are within the field of view. */
    uint32_t *set = new_set(builder, columns);
    if (set == NULL) return LR_FAILED;
    int64_t num_columns = 0;
    for (int p = 0; p < nu_i; p++) {
        for (int r = 0; r < nu_j; r++) {
            if (builder->reach_mm < 0.0 || passes(centre_i[p], centre_j[r], builder->reach_mm)) {
                set_bit(set, (int64_t)p * nu_j + r);
                num_columns++;
            }
        }
    }
    if (num_columns == 0) return LR_OK;
    LR_TRY(store_set(builder, columns, &mask.offset_a));

    /* Bit q * nv_j + s is 1 if the crystal rings are near enough to each other. */
    set = new_set(builder, rings);
    if (set == NULL) return LR_FAILED;
    int64_t num_rings = 0;
    for (int q = 0; q < nv_i; q++) {
        for (int s = 0; s < nv_j; s++) {
            if (rings_allow(scanner, module_i, module_j, q, s)) {
                set_bit(set, (int64_t)q * nv_j + s);
                num_rings++;
            }
        }
    }
    *any = num_rings > 0;
    if (num_rings == 0) return LR_OK;
    if (num_columns == columns && num_rings == rings)
        return append_pair(builder, (struct lr_pair_mask){.kind = LR_MASK_ALL});
    LR_TRY(store_set(builder, rings, &mask.offset_b));
    return append_pair(builder, mask);
}

lr_status lr_mask_builder_add(struct lr_mask_builder *builder, int i, int j, bool *any)
{
    const lr_scanner *scanner = builder->scanner;
    const lr_module *module_i = &scanner->modules[i], *module_j = &scanner->modules[j];
    const int apart = abs(module_i->position - module_j->position), around = scanner->num_positions - apart;
    const int least = scanner->coincidence.min_module_difference;
    const bool positions_allow = least == 0 || (apart < around ? apart : around) >= least;
    /* Pairs of layers of one block are excluded. A photon that one layer stops does not reach the others, and a line
     * through two layers of a block has both hits on one side. */
    const bool layers_allow =
        module_i->layer == module_j->layer || module_i->block != module_j->block || module_i->block == 0;
    *any = false;
    if (!positions_allow || !layers_allow) return LR_OK;
    if (builder->reach_mm < 0.0 && !scanner->coincidence.limits_ring_difference) {
        *any = true;
        return append_pair(builder, (struct lr_pair_mask){.kind = LR_MASK_ALL});
    }
    if (builder->reach_mm < 0.0 || (builder->upright[i] && builder->upright[j]))
        return add_separable_mask(builder, i, j, any);

    /* A mask of all crystal pairs. */
    const int *first = scanner->first_crystal;
    const int crystals_i = first[i + 1] - first[i], crystals_j = first[j + 1] - first[j];
    const double(*centre_i)[3] = (const double(*)[3])builder->centres + first[i];
    const double(*centre_j)[3] = (const double(*)[3])builder->centres + first[j];
    const int64_t bits = (int64_t)crystals_i * crystals_j;
    struct lr_pair_mask mask = {.kind = LR_MASK_FULL};
    uint32_t *set = new_set(builder, bits);
    if (set == NULL) return LR_FAILED;
    int64_t ones = 0;
    for (int a = 0; a < crystals_i; a++) {
        for (int b = 0; b < crystals_j; b++) {
            if (passes(centre_i[a], centre_j[b], builder->reach_mm) &&
                rings_allow(scanner, module_i, module_j, a / module_i->crystals[0], b / module_j->crystals[0])) {
                set_bit(set, (int64_t)a * crystals_j + b);
                ones++;
            }
        }
    }
    *any = ones > 0;
    if (ones == 0) return LR_OK;
    if (ones == bits) return append_pair(builder, (struct lr_pair_mask){.kind = LR_MASK_ALL});
    LR_TRY(store_set(builder, bits, &mask.offset_a));
    return append_pair(builder, mask);
}

struct lr_coincidence_masks *lr_mask_builder_finish(struct lr_mask_builder *builder)
{
    struct lr_coincidence_masks *masks = NULL;
    if (new_set(builder, 32) != NULL) {
        masks = builder->masks;
        builder->masks = NULL;
    }
    lr_mask_builder_destroy(builder);
    return masks;
}

void lr_mask_builder_destroy(struct lr_mask_builder *builder)
{
    if (builder == NULL) return;
    lr_coincidence_masks_destroy(builder->masks);
    lr_free_all(builder->sets, builder->centres, builder->upright, builder);
}

void lr_coincidence_masks_destroy(struct lr_coincidence_masks *masks)
{
    if (masks != NULL) lr_free_all(masks->pairs, masks->words, masks);
}
