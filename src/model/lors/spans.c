/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules, crystals, ends and numbers of many LORs at once. */
#include "model/lors/place.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* LORs that a thread looks up at once. Starting a thread for fewer does not pay. */
enum { AT_ONCE = 1 << 14 };

/* A look-up of one kind of result; the other pointers are NULL. */
struct look_up {
    const lr_lors *lors;
    const lr_lor_span *span;
    lr_lor *described;
    int32_t (*crystals)[2];
    double (*ends_mm)[2][3];
    const double (*hits_mm)[3]; /* [num_crystals] for ends */
    atomic_llong first_wrong;   /* index of the first number that is no LOR */
};

static void look_up(void *user, int64_t begin, int64_t end, int worker)
{
    struct look_up *wanted = user;
    const lr_lors *lors = wanted->lors;
    struct lr_lor_place at = {.lors = lors};
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const int64_t lor = lr_span_lor(wanted->span, k);
        if (lor < 0 || lor >= lors->count) {
            lr_lower(&wanted->first_wrong, k);
            continue;
        }
        lr_place_seek(&at, lor);
        const int32_t crystals[2] = {at.first_i + at.a, at.first_j + at.b};
        if (wanted->described != NULL) {
            wanted->described[k] = (lr_lor){.module_i = lors->pairs[at.pair][0],
                                            .p = at.p,
                                            .q = at.q,
                                            .module_j = lors->pairs[at.pair][1],
                                            .r = at.b % at.nu_j,
                                            .s = at.b / at.nu_j};
        }
        for (int end_of = 0; end_of < 2; end_of++) {
            if (wanted->crystals != NULL) wanted->crystals[k][end_of] = crystals[end_of];
            for (int axis = 0; wanted->ends_mm != NULL && axis < 3; axis++)
                wanted->ends_mm[k][end_of][axis] = wanted->hits_mm[crystals[end_of]][axis];
        }
    }
}

static lr_status run(struct look_up *wanted, const lr_log *log)
{
    const lr_lor_span *span = wanted->span;
    if (wanted->lors->scanner == NULL)
        return lr_error(log, LR_USAGE, "LORs of histo-images and events have no crystals");
    atomic_init(&wanted->first_wrong, INT64_MAX);
    lr_parallel_for(lr_num_processors(), span->count, AT_ONCE, look_up, wanted);
    const int64_t wrong = atomic_load(&wanted->first_wrong);
    if (wrong == INT64_MAX) return LR_OK;
    return lr_error(log, LR_USAGE, "number %lld of the list, %lld, is no LOR: there are %lld, from 0 on",
                    (long long)wrong, (long long)lr_span_lor(span, wrong), (long long)wanted->lors->count);
}

lr_status lr_lor_span_describe(const lr_lors *lors, const lr_lor_span *span, lr_lor *described, const lr_log *log)
{
    return run(&(struct look_up){.lors = lors, .span = span, .described = described}, log);
}

lr_status lr_lor_span_crystals(const lr_lors *lors, const lr_lor_span *span, int32_t (*crystals)[2], const lr_log *log)
{
    return run(&(struct look_up){.lors = lors, .span = span, .crystals = crystals}, log);
}

lr_status lr_lor_span_ends(const lr_lors *lors, const lr_lor_span *span, double (*ends_mm)[2][3], const lr_log *log)
{
    const int64_t num_crystals = lors->scanner != NULL ? lors->scanner->num_crystals : 0;
    double(*hits_mm)[3] = lr_alloc(num_crystals, sizeof(*hits_mm), "places of crystals", log);
    if (hits_mm == NULL) return LR_FAILED;
    if (lors->scanner != NULL) lr_scanner_hit_centres(lors->scanner, hits_mm);
    struct look_up wanted = {.lors = lors, .span = span, .ends_mm = ends_mm, .hits_mm = (const double(*)[3])hits_mm};
    const lr_status status = run(&wanted, log);
    free(hits_mm);
    return status;
}

struct numbering {
    const lr_lors *lors;
    const int32_t (*crystals)[2];
    int64_t *numbers;
};

static void find_numbers(void *user, int64_t begin, int64_t end, int worker)
{
    const struct numbering *wanted = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        wanted->numbers[k] = lr_lors_number(wanted->lors, wanted->crystals[k][0], wanted->crystals[k][1]);
}

void lr_lors_numbers(const lr_lors *lors, const int32_t (*crystals)[2], int64_t count, int64_t *numbers)
{
    lr_parallel_for(lr_num_processors(), count, AT_ONCE, find_numbers,
                    &(struct numbering){.lors = lors, .crystals = crystals, .numbers = numbers});
}
