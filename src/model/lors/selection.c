/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/selection.h"

#include "base/log.h"
#include "base/order.h"
#include "model/lors/pair_window.h"
#include "model/lors/place.h"

int64_t lr_selection_count(const lr_lors *lors, const lr_selection *selection)
{
    if (lr_selection_is_all(selection)) return lors->count;
    if (selection->lors != NULL) return selection->num_lors;
    int64_t count = 0;
    for (int64_t k = 0; k < selection->num_pairs; k++) count += lr_pair_size(lors, selection->pairs[k]);
    return count;
}

lr_status lr_selection_check(const lr_lors *lors, const lr_selection *selection, const lr_log *log)
{
    if (selection == NULL) return LR_OK;
    if (selection->lors != NULL && selection->pairs != NULL)
        return lr_error(log, LR_USAGE, "a selection has LORs and module pairs: give one of the two");
    if (selection->num_lors < 0 || selection->num_pairs < 0) {
        return lr_error(log, LR_USAGE, "a selection cannot have %lld LORs and %lld module pairs",
                        (long long)selection->num_lors, (long long)selection->num_pairs);
    }
    if ((selection->lors == NULL && selection->num_lors > 0) ||
        (selection->pairs == NULL && selection->num_pairs > 0)) {
        return lr_error(log, LR_USAGE, "a selection of %lld %s needs their list",
                        (long long)(selection->num_lors + selection->num_pairs),
                        selection->num_lors > 0 ? "LORs" : "module pairs");
    }
    const int most = selection->interleave > 1 ? selection->interleave : 1;
    if (selection->interleave < 0 || selection->interleave_turn < 0 || selection->interleave_turn >= most ||
        (most > 1 && (selection->pairs == NULL || lors->angles == NULL))) {
        return lr_error(log, LR_USAGE,
                        "part %d of %d of interleaved LORs: give 0 to one below their number, and a list of a "
                        "scanner's module pairs",
                        selection->interleave_turn, selection->interleave);
    }

    /* The numbers of a list must ascend within their range, and one of the two lists must be empty. */
    const bool has_lors = selection->num_lors > 0;
    const char *what = has_lors ? "LOR" : "module pair";
    const int64_t num = has_lors ? selection->num_lors : selection->num_pairs;
    const int64_t end = has_lors ? lors->count : lors->num_pairs;
    for (int64_t k = 0, before = -1; k < num; k++) {
        const int64_t number = has_lors ? selection->lors[k] : selection->pairs[k];
        if (number < 0 || number >= end) {
            return lr_error(log, LR_USAGE, "entry %lld of a selection is %s %lld: the scanner has 0 to %lld",
                            (long long)k, what, (long long)number, (long long)end - 1);
        }
        if (number <= before) {
            return lr_error(log, LR_USAGE,
                            "entry %lld of a selection is %s %lld after %lld: list them in ascending order, each once",
                            (long long)k, what, (long long)number, (long long)before);
        }
        before = number;
    }
    return LR_OK;
}

int64_t lr_selection_lor(const lr_lors *lors, const lr_selection *selection, int64_t position)
{
    if (lr_selection_is_all(selection)) return position;
    if (selection->lors != NULL) return selection->lors[position];
    int64_t entry = 0;
    while (position >= lr_pair_size(lors, selection->pairs[entry]))
        position -= lr_pair_size(lors, selection->pairs[entry++]);
    return lors->offsets[selection->pairs[entry]] + position;
}

/* The first entry from `entry` on whose LOR is at least `lor`. The search starts near `entry`. */
static int64_t seek(const lr_selection *selection, int64_t entry, int64_t lor)
{
    int64_t step = 1, low = entry, high = entry;
    while (high < selection->num_lors && selection->lors[high] < lor) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = high < selection->num_lors ? high : selection->num_lors;
    return low + lr_first_at_least(selection->lors + low, high - low, lor);
}

/* --- walking --- */

/* Sets the next span within LORs first .. first + count - 1. The value of LOR `first` is at position
 * walk->entry_begin. */
static bool next_in_range(struct lr_selection_walk *walk, int64_t first, int64_t count)
{
    const int64_t end = walk->end > 0 ? walk->end : walk->lors->count;
    if (first + walk->inside < walk->begin) walk->inside = lr_smaller(walk->begin - first, count);
    const int64_t left = lr_smaller(count, end - first) - walk->inside;
    if (left <= 0) return false;
    walk->position = walk->entry_begin + walk->inside;
    walk->span = (lr_lor_span){.first = first + walk->inside,
                               .count = walk->longest > 0 ? lr_smaller(left, walk->longest) : left};
    walk->inside += walk->span.count;
    return true;
}

bool lr_selection_next(struct lr_selection_walk *walk)
{
    const lr_selection *selection = walk->selection;
    if (lr_selection_is_all(selection)) return next_in_range(walk, 0, walk->lors->count);
    if (selection->lors != NULL) {
        const int64_t end = walk->end > 0 ? walk->end : walk->lors->count;
        const int64_t longest = walk->longest > 0 ? walk->longest : selection->num_lors;
        walk->entry = seek(selection, walk->entry, walk->begin);
        const int64_t last = lr_smaller(walk->entry + longest, selection->num_lors);
        int64_t stop = last;
        if (stop > walk->entry && selection->lors[stop - 1] >= end)
            stop = lr_smaller(seek(selection, walk->entry, end), last);
        walk->position = walk->entry;
        walk->span = (lr_lor_span){.numbers = selection->lors + walk->entry, .count = stop - walk->entry};
        walk->entry = stop;
        return walk->span.count > 0;
    }
    for (; walk->entry < selection->num_pairs; walk->entry++) {
        const int32_t pair = selection->pairs[walk->entry];
        const int64_t first = walk->lors->offsets[pair], size = lr_pair_size(walk->lors, pair);
        if (next_in_range(walk, first, size)) return true;
        walk->entry_begin += size;
        walk->inside = 0;
    }
    return false;
}

/* --- finding --- */

int64_t lr_selection_find(struct lr_selection_finder *finder, int64_t lor)
{
    const lr_selection *selection = finder->selection;
    const lr_lors *lors = finder->lors;
    if (lr_selection_is_all(selection)) return lor;
    if (selection->lors != NULL) {
        finder->entry = seek(selection, finder->entry, lor);
        const bool found = finder->entry < selection->num_lors && selection->lors[finder->entry] == lor;
        return found ? finder->entry : -1;
    }
    while (finder->entry < selection->num_pairs && lors->offsets[selection->pairs[finder->entry] + 1] <= lor)
        finder->entry_begin += lr_pair_size(lors, selection->pairs[finder->entry++]);
    const bool found = finder->entry < selection->num_pairs && lors->offsets[selection->pairs[finder->entry]] <= lor;
    return found ? finder->entry_begin + lor - lors->offsets[selection->pairs[finder->entry]] : -1;
}

/* --- blanks in interleaved selections --- */

void lr_selection_blank(const lr_lors *lors, const lr_selection *selection, float *values)
{
    for (int64_t k = 0; selection->interleave > 1 && k < selection->num_pairs; k++) {
        const int32_t *pair = lors->pairs[selection->pairs[k]];
        const int *size_i = lors->scanner->modules[pair[0]].crystals;
        const int *size_j = lors->scanner->modules[pair[1]].crystals;
        const struct lr_module_places *i = &lors->angles->modules[pair[0]], *j = &lors->angles->modules[pair[1]];
        for (int a = 0; a < size_i[0] * size_i[1]; a++, values += size_j[0] * size_j[1]) {
            const int32_t at = lr_place_of_crystal(i, a % size_i[0], a / size_i[0]);
            const int32_t row = lr_row_of_crystal(i, a % size_i[0], a / size_i[0]);
            for (int b = 0; b < size_j[j->is_v]; b++) { /* b is a place of module j, with one crystal in each row */
                const int32_t sum = at + lr_place_of_crystal(j, b, b);
                bool keeps[LR_ROW_KINDS];
                for (int kind = 0; kind < LR_ROW_KINDS; kind++)
                    keeps[kind] = lr_turn(lors, selection->interleave, sum, kind) == selection->interleave_turn;
                float *first = values + (j->is_v ? b * size_j[0] : b);
                const int stride = j->is_v ? 1 : size_j[0];
                for (int n = 0; n < size_j[!j->is_v]; n++)
                    if (!keeps[lr_row_kind(row, j->rank + n)]) first[n * stride] = 0.0f;
            }
        }
    }
}
