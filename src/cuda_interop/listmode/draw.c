/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/draw.h"

#include "base/mem.h"
#include "cuda_interop/lend.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>

_Static_assert((int)LR_CUDA_LIST_MASK_ALL == (int)LR_MASK_ALL && (int)LR_CUDA_LIST_MASK_FULL == (int)LR_MASK_FULL,
               "one kind");

static lr_cuda_list_pair pair_of(const lr_lors *lors, int64_t number)
{
    const lr_scanner *scanner = lors->scanner;
    const struct lr_pair_mask *mask = &lors->masks->pairs[number];
    const int i = lors->pairs[number][0], j = lors->pairs[number][1];
    const int *of_i = scanner->modules[i].crystals, *of_j = scanner->modules[j].crystals;
    return (lr_cuda_list_pair){.begin = lors->offsets[number],
                               .first = {scanner->first_crystal[i], scanner->first_crystal[j]},
                               .i = {of_i[0], of_i[1]},
                               .j = {of_j[0], of_j[1]},
                               .crystals_j = scanner->first_crystal[j + 1] - scanner->first_crystal[j],
                               .mask = mask->kind,
                               .words = {mask->offset_a, mask->offset_b}};
}

static lr_cuda_list_pair *find_pairs(const lr_lors *lors, const lr_log *log)
{
    lr_cuda_list_pair *pairs = lr_alloc(lors->num_pairs, sizeof(*pairs), "pairs of modules", log);
    for (int64_t k = 0; pairs != NULL && k < lors->num_pairs; k++) pairs[k] = pair_of(lors, k);
    return pairs;
}

static const void *copy(struct lr_cuda_list_memory *memory, const void *from, int64_t bytes)
{
    return lr_cuda_list_allocate(memory, &(struct lr_cuda_list_block){"pairs of modules", from, bytes});
}

static int64_t bytes_of_words(const lr_lors *lors)
{
    return lors->masks->num_words * (int64_t)sizeof(uint32_t);
}

int64_t lr_cuda_list_drawing_bytes(const lr_lors *lors)
{
    return lors->num_pairs * (int64_t)sizeof(lr_cuda_list_pair) + bytes_of_words(lors);
}

lr_status lr_cuda_list_drawing_open(const struct lr_listmode_sample *sample, struct lr_cuda_list_memory *memory,
                                    lr_cuda_list_drawing *drawing)
{
    const lr_lors *lors = sample->lors;
    lr_cuda_list_pair *pairs = find_pairs(lors, memory->log);
    if (pairs == NULL) return LR_FAILED;
    *drawing = (lr_cuda_list_drawing){.pairs = copy(memory, pairs, lors->num_pairs * (int64_t)sizeof(*pairs)),
                                      .words = copy(memory, lors->masks->words, bytes_of_words(lors)),
                                      .num_pairs = lors->num_pairs,
                                      .num_lors = lors->count,
                                      .stride = sample->stride,
                                      .seed = sample->seed,
                                      .first = sample->first,
                                      .step = sample->step,
                                      .stream = memory->stream};
    const lr_status status = lr_cuda_check((int)cudaStreamSynchronize(memory->stream), "pairs of modules", memory->log);
    free(pairs);
    return drawing->pairs != NULL && drawing->words != NULL ? status : LR_FAILED;
}

int lr_cuda_list_draw(const lr_cuda_list_drawing *drawing, int64_t begin, int64_t end, int32_t *const crystals[2])
{
    lr_cuda_list_drawing some = *drawing;
    some.first += some.step * begin;
    some.count = end - begin;
    some.crystals[0] = crystals[0];
    some.crystals[1] = crystals[1];
    return lr_cuda_launch_list_draw(&some);
}
