/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/band_rows.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { OCTET = LR_CUDA_OCTET, ROWS = LR_CUDA_BAND_ROWS };

/* --- the kernel's rows --- */

struct lr_band_span *lr_band_span_at(const struct lr_band_rows *rows, int d, int slice)
{
    return &rows->spans[(int64_t)d * rows->count[1] + slice];
}

bool lr_band_is_empty(const struct lr_band_span *span)
{
    return span->first > span->last;
}

/* An ellipsoid's rows have no holes. */
static void fill_spans(struct lr_band_rows *rows, const struct lr_direct_shape *shape)
{
    const int32_t(*offsets)[3] = (const int32_t(*)[3])shape->offsets;
    int at[2] = {0, 0};
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        if (i == 0 || offsets[i][0] != offsets[i - 1][0] || offsets[i][1] != offsets[i - 1][1])
            lr_lattice_place_column(&rows->lattice, offsets[i], at);
        struct lr_band_span *span = lr_band_span_at(rows, at[1] - rows->least[0], offsets[i][2] - rows->least[1]);
        span->first = at[0] < span->first ? at[0] : span->first;
        span->last = at[0] > span->last ? at[0] : span->last;
    }
}

static void find_octets(struct lr_band_rows *rows)
{
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    for (int64_t k = 0; k < count; k++) {
        struct lr_band_span *span = &rows->spans[k];
        if (!lr_band_is_empty(span)) {
            span->octets[0] = lr_floor_div(span->first, OCTET);
            span->octets[1] = lr_floor_div(span->last + OCTET - 1, OCTET);
        }
    }
}

/* All row and slice offsets that there may be. */
static lr_status make_rows(struct lr_band_rows *rows, const struct lr_direct_shape *shape, const lr_log *log)
{
    const int *half = shape->info.half, *e = rows->lattice.next;
    const int reach = abs(e[0]) * half[1] + abs(e[1]) * half[0];
    rows->least[0] = -reach;
    rows->least[1] = -half[2];
    rows->count[0] = 2 * reach + 1;
    rows->count[1] = 2 * half[2] + 1;
    const int64_t count = (int64_t)rows->count[0] * rows->count[1];
    rows->spans = lr_alloc(count, sizeof(*rows->spans), "rows of a kernel", log);
    if (rows->spans == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) rows->spans[k] = (struct lr_band_span){INT32_MAX, INT32_MIN, {0, 0}};
    fill_spans(rows, shape);
    return LR_OK;
}

static bool is_row_empty(const struct lr_band_rows *rows, int d)
{
    for (int slice = 0; slice < rows->count[1]; slice++)
        if (!lr_band_is_empty(lr_band_span_at(rows, d, slice))) return false;
    return true;
}

/* Rows at both ends that no offset lies on are left out: as many at one end as at the other. */
static void trim_rows(struct lr_band_rows *rows)
{
    int empty = 0;
    while (2 * empty + 1 < rows->count[0] && is_row_empty(rows, empty)) empty++;
    rows->least[0] += empty;
    rows->count[0] -= 2 * empty;
    memmove(rows->spans, lr_band_span_at(rows, empty, 0),
            (size_t)rows->count[0] * (size_t)rows->count[1] * sizeof(*rows->spans));
}

lr_status lr_band_rows_init(struct lr_band_rows *rows, const struct lr_lattice *lattice,
                            const struct lr_direct_shape *shape, const lr_log *log)
{
    *rows = (struct lr_band_rows){.lattice = *lattice};
    LR_TRY(make_rows(rows, shape, log));
    trim_rows(rows);
    find_octets(rows);
    return LR_OK;
}

void lr_band_rows_finish(struct lr_band_rows *rows)
{
    free(rows->spans);
    *rows = (struct lr_band_rows){0};
}

/* --- halves of steps --- */

/* Lists of steps, one for each row offset that a warp's first row may have. */
int lr_band_count_lists(const struct lr_band_rows *rows)
{
    return rows->count[0] + ROWS - 1;
}

/* Row i's span where the first row has row offset d; NULL: it has none. */
const struct lr_band_span *lr_band_span_of(const struct lr_band_rows *rows, int d, int i, int slice)
{
    const bool is_there = d - i >= 0 && d - i < rows->count[0];
    const struct lr_band_span *span = is_there ? lr_band_span_at(rows, d - i, slice) : NULL;
    return is_there && !lr_band_is_empty(span) ? span : NULL;
}

/* Whether row i has weights for it. */
bool lr_band_has_half(const struct lr_band_rows *rows, int d, int i, const struct lr_band_half *half)
{
    const struct lr_band_span *span = lr_band_span_of(rows, d, i, half->slice);
    return span != NULL && half->octet >= span->octets[0] && half->octet <= span->octets[1];
}

static bool is_needed(const struct lr_band_rows *rows, int d, const struct lr_band_half *half)
{
    for (int i = 0; i < ROWS; i++)
        if (lr_band_has_half(rows, d, i, half)) return true;
    return false;
}

/* Octets of sources that a list's steps have: from the first to the last; last < first: none. */
void lr_band_range(const struct lr_band_rows *rows, int d, int range[2])
{
    range[0] = INT32_MAX;
    range[1] = INT32_MIN;
    for (int k = 0; k < ROWS * rows->count[1]; k++) {
        const struct lr_band_span *span = lr_band_span_of(rows, d, k % ROWS, k / ROWS);
        if (span != NULL) {
            range[0] = span->octets[0] < range[0] ? span->octets[0] : range[0];
            range[1] = span->octets[1] > range[1] ? span->octets[1] : range[1];
        }
    }
}

static int count_octets(const struct lr_band_span *span)
{
    return span != NULL ? span->octets[1] - span->octets[0] + 1 : 0;
}

/* Octets that both have. */
static int count_common(const struct lr_band_span *a, const struct lr_band_span *b)
{
    if (a == NULL || b == NULL) return 0;
    const int first = a->octets[0] > b->octets[0] ? a->octets[0] : b->octets[0];
    const int last = a->octets[1] < b->octets[1] ? a->octets[1] : b->octets[1];
    return last >= first ? last - first + 1 : 0;
}

int lr_band_count_halves(const struct lr_band_rows *rows, int d)
{
    _Static_assert((int)ROWS == 2, "what two rows have");
    int count = 0;
    for (int slice = 0; slice < rows->count[1]; slice++) {
        const struct lr_band_span *both[ROWS] = {lr_band_span_of(rows, d, 0, slice),
                                                 lr_band_span_of(rows, d, 1, slice)};
        count += count_octets(both[0]) + count_octets(both[1]) - count_common(both[0], both[1]);
    }
    return count;
}

int lr_band_list_halves(const struct lr_band_rows *rows, int d, struct lr_band_half *halves)
{
    int range[2], count = 0;
    lr_band_range(rows, d, range);
    for (int octet = range[0]; octet <= range[1]; octet++) {
        for (int slice = 0; slice < rows->count[1]; slice++) {
            const struct lr_band_half half = {octet, slice};
            if (is_needed(rows, d, &half)) halves[count++] = half;
        }
    }
    return count;
}

/* --- the grid's rows --- */

/* As lr_floor_div; dividing by what is known is faster, and lattices have steps of one or two. */
static int divide(int number, int by)
{
    return by == 1 ? number : by == 2 ? lr_floor_div(number, 2) : lr_floor_div(number, by);
}

/* Keeps the places l of a range for which 0 <= first + l step < size. */
static void clip(int first, int step, int size, int range[2])
{
    int least = range[0], most = range[1];
    if (step > 0) {
        least = divide(-first + step - 1, step);
        most = divide(size - 1 - first, step);
    } else if (step < 0) {
        least = divide(first - size + 1 - step - 1, -step);
        most = divide(first, -step);
    } else if (first < 0 || first >= size) {
        most = least - 1;
    }
    range[0] = least > range[0] ? least : range[0];
    range[1] = most < range[1] ? most : range[1];
}

void lr_band_grid_row(const struct lr_lattice *lattice, const int32_t size[2], int row, int32_t found[4])
{
    int range[2] = {-(1 << 20), 1 << 20};
    for (int k = 0; k < 2; k++) clip(row * lattice->across[k], lattice->next[k], size[k], range);
    const bool is_empty = range[0] > range[1];
    found[0] = is_empty ? 0 : lr_floor_div(range[0], OCTET);
    found[1] = is_empty ? 0 : lr_floor_div(range[1], OCTET) + 1;
    found[2] = is_empty ? 0 : range[0] - OCTET * found[0];
    found[3] = is_empty ? 0 : range[1] + 1 - OCTET * found[0];
}

int64_t lr_band_count_octets(const struct lr_lattice *lattice, const int32_t size[2])
{
    int least[2], most[2];
    int64_t count = 0;
    lr_lattice_extent(lattice, size, least, most);
    for (int row = least[1]; row <= most[1]; row++) {
        int32_t found[4];
        lr_band_grid_row(lattice, size, row, found);
        count += found[1] - found[0];
    }
    return count;
}
