/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "model/coincidence.h"
#include "model/place.h"

#include <stdlib.h>
#include <string.h>

/* A list under construction; the public struct is a const view of it. */
struct pair_list {
    int32_t (*pairs)[2];
    int64_t *offsets;
    int32_t *pair_of;
    int64_t num_pairs, max_pairs;
};

static int64_t crystals_of(const lr_scanner *scanner, int module)
{
    return scanner->first_crystal[module + 1] - scanner->first_crystal[module];
}

static lr_status append(struct pair_list *list, const lr_scanner *scanner, int i, int j,
                        const lr_log *log)
{
    if (list->num_pairs == INT32_MAX) {
        return lr_error(log, LR_FAILED, "%s: more than %d pairs of modules are in coincidence",
                        scanner->name, INT32_MAX);
    }
    if (list->num_pairs == list->max_pairs) {
        const int64_t room = 2 * list->max_pairs + 64;
        void *pairs = lr_resize(list->pairs, room, sizeof(*list->pairs), "module pairs", log);
        if (pairs == NULL) {
            return LR_FAILED;
        }
        list->pairs = pairs;
        void *offsets =
            lr_resize(list->offsets, room + 1, sizeof(*list->offsets), "module pairs", log);
        if (offsets == NULL) {
            return LR_FAILED;
        }
        list->offsets = offsets;
        list->max_pairs = room;
    }
    const int64_t k = list->num_pairs++;
    const int64_t begin = k == 0 ? 0 : list->offsets[k];
    list->pairs[k][0] = i;
    list->pairs[k][1] = j;
    list->offsets[k] = begin;
    list->offsets[k + 1] = begin + crystals_of(scanner, i) * crystals_of(scanner, j);
    list->pair_of[(int64_t)i * scanner->num_modules + j] = (int32_t)k;
    list->pair_of[(int64_t)j * scanner->num_modules + i] = (int32_t)k;
    return LR_OK;
}

static lr_status list_pairs(struct pair_list *list, const lr_scanner *scanner,
                            struct lr_mask_builder *builder, const lr_log *log)
{
    const int64_t num_modules = scanner->num_modules;
    list->pair_of = lr_alloc(num_modules * num_modules, sizeof(*list->pair_of),
                             "the table of module pairs", log);
    if (list->pair_of == NULL) {
        return LR_FAILED;
    }
    memset(list->pair_of, -1, (size_t)(num_modules * num_modules) * sizeof(*list->pair_of));
    for (int i = 0; i < num_modules; i++) {
        for (int j = i + 1; j < num_modules; j++) {
            bool any = false;
            LR_TRY(lr_mask_builder_add(builder, i, j, &any));
            if (any) {
                LR_TRY(append(list, scanner, i, j, log));
            }
        }
    }
    if (list->num_pairs == 0) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: no two crystals are in coincidence: widen the field of view or the "
                        "ring difference, or lower the module difference",
                        scanner->name);
    }
    return LR_OK;
}

static void free_list(struct pair_list *list)
{
    free(list->pairs);
    free(list->offsets);
    free(list->pair_of);
}

lr_lors *lr_lors_create(const lr_scanner *scanner, const lr_log *log)
{
    struct pair_list list = {0};
    lr_lors *lors = lr_alloc(1, sizeof(*lors), "the list of LORs", log);
    struct lr_mask_builder *builder = lors ? lr_mask_builder_create(scanner, log) : NULL;
    if (builder == NULL) {
        goto fail;
    }
    if (list_pairs(&list, scanner, builder, log) != LR_OK) {
        goto fail;
    }
    lors->masks = lr_mask_builder_finish(builder);
    builder = NULL;
    if (lors->masks == NULL) {
        goto fail;
    }
    lors->scanner = scanner;
    lors->num_pairs = list.num_pairs;
    lors->pairs = (const int32_t(*)[2])list.pairs;
    lors->offsets = list.offsets;
    lors->count = list.offsets[list.num_pairs];
    lors->pair_of = list.pair_of;
    return lors;
fail:
    lr_mask_builder_destroy(builder);
    free_list(&list);
    free(lors);
    return NULL;
}

void lr_lors_destroy(lr_lors *lors)
{
    if (lors == NULL) {
        return;
    }
    free((void *)lors->pairs);
    free((void *)lors->offsets);
    free((void *)lors->pair_of);
    lr_coincidence_masks_destroy((struct lr_coincidence_masks *)lors->masks);
    free(lors);
}

int64_t lr_lors_number(const lr_lors *lors, int crystal_a, int crystal_b)
{
    const lr_scanner *scanner = lors->scanner;
    if (scanner == NULL || crystal_a < 0 || crystal_b < 0 || crystal_a >= scanner->num_crystals ||
        crystal_b >= scanner->num_crystals) {
        return -1;
    }
    const int low = crystal_a < crystal_b ? crystal_a : crystal_b;
    const int high = crystal_a < crystal_b ? crystal_b : crystal_a;
    const int i = lr_scanner_module_of(scanner, low);
    const int j = lr_scanner_module_of(scanner, high);
    const int32_t pair = lors->pair_of[(int64_t)i * scanner->num_modules + j];
    if (pair < 0) {
        return -1;
    }
    return lors->offsets[pair] + (low - scanner->first_crystal[i]) * crystals_of(scanner, j) +
           (high - scanner->first_crystal[j]);
}

static lr_lor describe(const lr_lors *lors, int64_t pair, int64_t lor)
{
    const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
    const int nu_i = lors->scanner->modules[i].crystals[0];
    const int nu_j = lors->scanner->modules[j].crystals[0];
    const int64_t crystals_j = crystals_of(lors->scanner, j);
    const int a = (int)((lor - lors->offsets[pair]) / crystals_j);
    const int b = (int)((lor - lors->offsets[pair]) % crystals_j);
    return (lr_lor){
        .module_i = i, .p = a % nu_i, .q = a / nu_i, .module_j = j, .r = b % nu_j, .s = b / nu_j};
}

lr_lor lr_lors_describe(const lr_lors *lors, int64_t lor)
{
    const int64_t pair = lr_place_pair(lors, lor);
    return lors->scanner != NULL ? describe(lors, pair, lor)
                                 : (lr_lor){(int)pair, -1, -1, -1, -1, -1};
}

bool lr_lors_in_coincidence(const lr_lors *lors, int64_t lor)
{
    if (lor < 0 || lor >= lors->count || lors->scanner == NULL) {
        return lor >= 0 && lor < lors->count;
    }
    const int64_t pair = lr_place_pair(lors, lor);
    const lr_lor spelled = describe(lors, pair, lor);
    return lr_coincidence_allows(lors, pair, spelled.p, spelled.q, spelled.r, spelled.s);
}
