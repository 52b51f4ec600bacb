/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Some module pairs of a layout as a layout of its own, and data of theirs. */
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/angles.h"
#include "model/lors/selection.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>
#include <string.h>

/* --- the layout --- */

/* The same bits; which pair has which is all that differs. */
static struct lr_coincidence_masks *copy_masks(const struct lr_coincidence_masks *all, const lr_selection *part,
                                               const lr_log *log)
{
    static const char *const what = "the coincidence masks";
    struct lr_coincidence_masks *masks = lr_alloc(1, sizeof(*masks), what, log);
    if (masks == NULL) return NULL;
    masks->pairs = lr_alloc(part->num_pairs, sizeof(*masks->pairs), what, log);
    masks->words = lr_alloc(all->num_words + 1, sizeof(*masks->words), what, log);
    if (masks->pairs == NULL || masks->words == NULL) {
        lr_coincidence_masks_destroy(masks);
        return NULL;
    }
    masks->num_pairs = part->num_pairs;
    masks->num_words = all->num_words;
    memcpy(masks->words, all->words, (size_t)all->num_words * sizeof(*masks->words));
    for (int64_t k = 0; k < part->num_pairs; k++) masks->pairs[k] = all->pairs[part->pairs[k]];
    return masks;
}

static void fill(const lr_lors *all, const lr_selection *part, int32_t (*pairs)[2], int64_t *offsets)
{
    offsets[0] = 0;
    for (int64_t k = 0; k < part->num_pairs; k++) {
        const int32_t pair = part->pairs[k];
        memcpy(pairs[k], all->pairs[pair], sizeof(pairs[k]));
        offsets[k + 1] = offsets[k] + all->offsets[pair + 1] - all->offsets[pair];
    }
}

static void fill_first(const lr_lors *lors, int32_t *first_pair)
{
    int64_t pair = 0;
    for (int i = 0; i <= lors->scanner->num_modules; i++) {
        while (pair < lors->num_pairs && lors->pairs[pair][0] < i) pair++;
        first_pair[i] = (int32_t)pair;
    }
}

static lr_status check(const lr_lors *all, const lr_selection *part, const lr_log *log)
{
    if (all->scanner == NULL || part->pairs == NULL || part->num_pairs < 1)
        return lr_error(log, LR_USAGE, "a part of a layout needs pairs of a scanner's modules");
    return lr_selection_check(all, part, log);
}

lr_lors *lr_lors_create_part(const lr_lors *all, const lr_selection *part, const lr_log *log)
{
    static const char *const what = "the list of LORs";
    if (check(all, part, log) != LR_OK) return NULL;
    lr_lors *lors = lr_alloc(1, sizeof(*lors), what, log);
    if (lors == NULL) return NULL;
    int32_t(*pairs)[2] = lr_alloc(part->num_pairs, sizeof(*pairs), what, log);
    int64_t *offsets = lr_alloc(part->num_pairs + 1, sizeof(*offsets), what, log);
    int32_t *first = lr_alloc((int64_t)all->scanner->num_modules + 1, sizeof(*first), what, log);
    *lors = (lr_lors){.scanner = all->scanner,
                      .num_pairs = part->num_pairs,
                      .pairs = (const int32_t(*)[2])pairs,
                      .offsets = offsets,
                      .first_pair = first,
                      .masks = copy_masks(all->masks, part, log),
                      .angles = lr_angles_create(all->scanner, log)};
    if (pairs == NULL || offsets == NULL || first == NULL || lors->masks == NULL || lors->angles == NULL) {
        lr_lors_destroy(lors);
        return NULL;
    }
    fill(all, part, pairs, offsets);
    lors->count = offsets[part->num_pairs];
    fill_first(lors, first);
    return lors;
}

/* --- data --- */

static int64_t find_pair(const lr_lors *all, const lr_lors *part, int64_t k)
{
    return lr_lors_pair(all, part->pairs[k][0], part->pairs[k][1]);
}

static lr_lor_data *take_dense(const lr_lor_data *data, const lr_lors *all, const lr_lors *part, const lr_log *log)
{
    lr_lor_data *taken = lr_lor_data_create(part, log);
    for (int64_t k = 0; taken != NULL && k < part->num_pairs; k++) {
        const int64_t count = part->offsets[k + 1] - part->offsets[k];
        memcpy(taken->values + part->offsets[k], data->values + all->offsets[find_pair(all, part, k)],
               (size_t)count * sizeof(*taken->values));
    }
    return taken;
}

/* The first entry at or after a LOR. */
static int64_t find_entry(const lr_lor_data *data, int64_t lor)
{
    int64_t low = 0, high = data->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (data->index[middle] < lor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Counts the entries of the part, or copies them too. */
static int64_t walk(const lr_lor_data *data, const lr_lors *all, const lr_lors *part, lr_lor_data *taken)
{
    int64_t count = 0;
    for (int64_t k = 0; k < part->num_pairs; k++) {
        const int64_t pair = find_pair(all, part, k);
        const int64_t begin = find_entry(data, all->offsets[pair]);
        const int64_t end = find_entry(data, all->offsets[pair + 1]);
        for (int64_t n = begin; taken != NULL && n < end; n++) {
            taken->index[count + n - begin] = data->index[n] - all->offsets[pair] + part->offsets[k];
            taken->values[count + n - begin] = data->values[n];
        }
        count += end - begin;
    }
    return count;
}

static lr_lor_data *take_sparse(const lr_lor_data *data, const lr_lors *all, const lr_lors *part, const lr_log *log)
{
    lr_lor_data *taken = lr_alloc(1, sizeof(*taken), "LOR data", log);
    if (taken == NULL) return NULL;
    taken->count = walk(data, all, part, NULL);
    taken->index = lr_alloc(taken->count, sizeof(*taken->index), "LOR data", log);
    taken->values = lr_alloc(taken->count, sizeof(*taken->values), "LOR data", log);
    if (taken->index == NULL || taken->values == NULL) {
        lr_lor_data_destroy(taken);
        return NULL;
    }
    (void)walk(data, all, part, taken);
    return taken;
}

lr_lor_data *lr_lor_data_take(const lr_lor_data *data, const lr_lors *all, const lr_lors *part, const lr_log *log)
{
    return (data->index != NULL ? take_sparse : take_dense)(data, all, part, log);
}
