/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal pairs that the coincidence rules allow, as bits (docs/method/common.md, "LORs and
 * coincidence"). */
#pragma once

#include <lr/lors.h>

/* Kinds of masks of a pair of modules i < j. Crystal (p, q) is in module i, (r, s) in j. Bit n of a set that begins
 * at word w is bit n mod 32 (1 = lowest) of words[w + n / 32]. */
enum {
    LR_MASK_ALL = 0,       /* all crystal pairs are in coincidence; no bits are stored */
    LR_MASK_SEPARABLE = 1, /* a pair is in coincidence if bit p * nu_j + r of the set at offset_a and bit q * nv_j + s
                              of the set at offset_b are 1 */
    LR_MASK_FULL = 2       /* a pair is in coincidence if bit a * crystals_j + b of the set at offset_a is 1; a = q *
                              nu_i + p, b = s * nu_j + r */
};

/* The mask of a pair of modules. The mask is three consecutive uint32, so that it can be copied to a storage buffer
 * directly. */
struct lr_pair_mask {
    uint32_t kind;               /* LR_MASK_... */
    uint32_t offset_a, offset_b; /* first words of the sets; 0 if this kind has no sets */
};

/* Bytes per pair of modules in an lr_lors: its modules, its first LOR and its mask. */
#define LR_PAIR_BYTES ((int64_t)(sizeof(int32_t[2]) + sizeof(int64_t) + sizeof(struct lr_pair_mask)))

/* The masks of all pairs. Pairs with equal bits share their words. Owned by the lr_lors. */
struct lr_coincidence_masks {
    int64_t num_pairs;
    struct lr_pair_mask *pairs; /* [num_pairs] in the order of lr_lors.pairs */
    int64_t num_words;
    uint32_t *words; /* [num_words]; at least one word is allocated */
};

/* Bit n of a set. */
static inline bool lr_mask_bit(const uint32_t *set, int64_t n)
{
    return set[n / 32] >> (n % 32) & 1u;
}

/* True if crystals (p, q) of the lower and (r, s) of the higher module of pair `pair` are in coincidence. */
static inline bool lr_coincidence_allows(const lr_lors *lors, int64_t pair, int p, int q, int r, int s)
{
    const struct lr_pair_mask *mask = &lors->masks->pairs[pair];
    if (mask->kind == LR_MASK_ALL) return true;
    const lr_module *i = &lors->scanner->modules[lors->pairs[pair][0]];
    const lr_module *j = &lors->scanner->modules[lors->pairs[pair][1]];
    const uint32_t *set_a = lors->masks->words + mask->offset_a;
    if (mask->kind == LR_MASK_FULL) {
        const int64_t crystals_j = (int64_t)j->crystals[0] * j->crystals[1];
        return lr_mask_bit(set_a, ((int64_t)q * i->crystals[0] + p) * crystals_j + (int64_t)s * j->crystals[0] + r);
    }
    const uint32_t *set_b = lors->masks->words + mask->offset_b;
    return lr_mask_bit(set_a, (int64_t)p * j->crystals[0] + r) && lr_mask_bit(set_b, (int64_t)q * j->crystals[1] + s);
}

/* Collects masks pair by pair, in any order. The caller must remember this order. */
struct lr_mask_builder;

enum lr_masks { LR_MASKS_STORED, LR_MASKS_COUNTED }; /* if pairs are counted, no mask is stored */
struct lr_mask_builder *lr_mask_builder_create(const lr_scanner *scanner, enum lr_masks masks, const lr_log *log);

/* Evaluates the rules for modules i < j. *any is true if a crystal pair is in coincidence. If masks are stored, the
 * mask of such modules is then appended. errors: LR_FAILED, out of memory. */
lr_status lr_mask_builder_add(struct lr_mask_builder *builder, int i, int j, bool *any);

/* Frees the builder and returns the masks, which the caller then owns; NULL if memory was short. */
struct lr_coincidence_masks *lr_mask_builder_finish(struct lr_mask_builder *builder);

void lr_mask_builder_destroy(struct lr_mask_builder *builder);
void lr_coincidence_masks_destroy(struct lr_coincidence_masks *masks);
