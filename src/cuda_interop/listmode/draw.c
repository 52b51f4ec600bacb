/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/listmode/draw.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/lend.h"
#include "model/scanner/coincidence.h"

#include <stdlib.h>

_Static_assert((int)LR_CUDA_LIST_MASK_ALL == (int)LR_MASK_ALL &&
                   (int)LR_CUDA_LIST_MASK_FULL == (int)LR_MASK_FULL,
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
                               .crystals_j =
                                   scanner->first_crystal[j + 1] - scanner->first_crystal[j],
                               .mask = mask->kind,
                               .words = {mask->offset_a, mask->offset_b}};
}

static lr_cuda_list_pair *find_pairs(const lr_lors *lors, const lr_log *log)
{
    lr_cuda_list_pair *pairs = lr_alloc(lors->num_pairs, sizeof(*pairs), "pairs of modules", log);
    for (int64_t k = 0; pairs != NULL && k < lors->num_pairs; k++) {
        pairs[k] = pair_of(lors, k);
    }
    return pairs;
}

static const void *copy(struct lr_cuda_list_memory *memory, const void *from, int64_t bytes)
{
    return lr_cuda_list_allocate(memory,
                                 &(struct lr_cuda_list_block){"pairs of modules", from, bytes});
}

static lr_status open_drawing(const lr_lors *lors, struct lr_cuda_list_memory *memory,
                              lr_cuda_list_drawing *drawing)
{
    lr_cuda_list_pair *pairs = find_pairs(lors, memory->log);
    if (pairs == NULL) {
        return LR_FAILED;
    }
    drawing->pairs = copy(memory, pairs, lors->num_pairs * (int64_t)sizeof(*pairs));
    drawing->words =
        copy(memory, lors->masks->words, lors->masks->num_words * (int64_t)sizeof(uint32_t));
    const lr_status status =
        lr_cuda_check((int)cudaStreamSynchronize(memory->stream), "pairs of modules", memory->log);
    free(pairs);
    return drawing->pairs != NULL && drawing->words != NULL ? status : LR_FAILED;
}

lr_status lr_cuda_list_draw(const struct lr_listmode_sample *sample, int64_t begin, int64_t end,
                            int32_t *const crystals[2], struct lr_cuda_list_memory *memory)
{
    lr_cuda_list_drawing drawing = {.num_pairs = sample->lors->num_pairs,
                                    .num_lors = sample->lors->count,
                                    .stride = sample->stride,
                                    .seed = sample->seed,
                                    .first = sample->first + sample->step * begin,
                                    .step = sample->step,
                                    .count = end - begin,
                                    .crystals = {crystals[0], crystals[1]},
                                    .stream = memory->stream};
    LR_TRY(open_drawing(sample->lors, memory, &drawing));
    return lr_cuda_check(lr_cuda_launch_list_draw(&drawing), "drawing lines", memory->log);
}
