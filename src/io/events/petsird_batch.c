/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/petsird_batch.h"

#include "base/grow.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* --- one event --- */

/* A place within the crystal that a bin is of, counted in crystals: it is so far from either end that rounding changes
 * neither the crystal's number nor that of its module. Divisions would take longer. */
static inline double place_of_bin(const struct lr_petsird_type *type, int64_t bin)
{
    return type->num_energies == 1 ? (double)bin + 0.5 : ((double)bin + 0.5) * type->per_energy;
}

static inline int32_t crystal_of_bin(const struct lr_petsird_crystals *crystals, int type, int64_t bin)
{
    const struct lr_petsird_type *found = &crystals->petsird->types[type];
    const double place = place_of_bin(found, bin);
    const bool is_known = place >= 0.0 && place < (double)(found->num_elements * found->num_modules);
    return is_known ? crystals->crystal_of[found->first_crystal + (int64_t)place] : -1;
}

static inline enum lr_petsird_fate event_of(const struct lr_petsird_crystals *crystals,
                                            const struct lr_petsird_list *list,
                                            const struct lr_petsird_coincidence *from, lr_event *event)
{
    /* At most one bin is none, and none has other bins than the first. */
    const int bins = list->pair->num_edges > 1 ? list->pair->num_edges - 1 : 1;
    if (from->tof < 0 || from->tof >= bins) return LR_PETSIRD_DAMAGED;
    const float middle = bins > 1 ? list->pair->middles_mm[from->tof] : 0.0f;
    const int32_t a = crystal_of_bin(crystals, list->types[0], from->bins[0]);
    const int32_t b = crystal_of_bin(crystals, list->types[1], from->bins[1]);
    *event = (lr_event){.crystals = {a, b},
                        .tof_mm = list->sign < 0 ? -middle : middle,
                        .weight = 1,
                        .time_ms = list->start_ms,
                        .is_delayed = list->is_delayed};
    return (a | b) < 0 ? LR_PETSIRD_UNKNOWN : LR_PETSIRD_TAKEN;
}

enum lr_petsird_fate lr_petsird_event(const struct lr_petsird_crystals *crystals, const struct lr_petsird_list *list,
                                      const struct lr_petsird_coincidence *from, lr_event *event)
{
    return event_of(crystals, list, from, event);
}

bool lr_petsird_in_mask(const struct lr_petsird_crystals *crystals, const struct lr_petsird_list *list,
                        const struct lr_petsird_coincidence *from, int64_t modules[2])
{
    for (int k = 0; k < 2; k++) {
        const struct lr_petsird_type *type = &crystals->petsird->types[list->types[k]];
        modules[k] = (int32_t)(place_of_bin(type, from->bins[k]) * type->per_element);
    }
    return lr_petsird_allows(crystals->petsird, list->types, modules);
}

/* --- where numbers stand --- */

static bool is_whole(const struct lr_yardl_type *type)
{
    return type != NULL && (type->kind == LR_YARDL_UNSIGNED || type->kind == LR_YARDL_SIGNED);
}

/* How many numbers a field has; 0 = it has none, or others. */
static int64_t count_values(const struct lr_yardl_type *type)
{
    if (is_whole(type)) return 1;
    if (type == NULL || type->kind != LR_YARDL_LIST || !type->is_fixed || !is_whole(type->item)) return 0;
    int64_t count = 1;
    for (int k = 0; k < type->rank && count <= LR_PETSIRD_MAX_VALUES; k++)
        count = type->dims[k] <= LR_PETSIRD_MAX_VALUES ? count * type->dims[k] : 0;
    return count;
}

bool lr_petsird_plan_of(const struct lr_yardl_type *type, struct lr_petsird_plan *plan)
{
    *plan = (struct lr_petsird_plan){.at = {-1, -1, -1}};
    for (int k = 0; type->kind == LR_YARDL_RECORD && k < type->num_parts; k++) {
        const struct lr_yardl_part *part = &type->parts[k];
        const int64_t count = count_values(part->type);
        if (count < 1 || plan->num_values + count > LR_PETSIRD_MAX_VALUES) return false;
        if (strcmp(part->name, "detectionBins") == 0 && count == 2) {
            plan->at[0] = plan->num_values;
            plan->at[1] = plan->num_values + 1;
            plan->is_signed[0] = plan->is_signed[1] = part->type->item->kind == LR_YARDL_SIGNED;
        } else if (strcmp(part->name, "tofIdx") == 0 && is_whole(part->type)) {
            plan->at[2] = plan->num_values;
            plan->is_signed[2] = part->type->kind == LR_YARDL_SIGNED;
        } else if (strcmp(part->name, "tofIdx") == 0 || strcmp(part->name, "detectionBins") == 0) {
            return false;
        }
        plan->num_values += (int)count;
    }
    return plan->at[0] >= 0;
}

bool lr_petsird_same_plan(const struct lr_petsird_plan *a, const struct lr_petsird_plan *b)
{
    bool same = a->num_values == b->num_values;
    for (int k = 0; k < 3; k++) same = same && a->at[k] == b->at[k] && a->is_signed[k] == b->is_signed[k];
    return same;
}

/* Of eight bytes those that end a number. */
static int count_ends(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return (int)(((~word >> 7 & UINT64_C(0x0101010101010101)) * UINT64_C(0x0101010101010101)) >> 56);
}

enum { BLOCK_WORDS = 32, BLOCK_BYTES = 8 * BLOCK_WORDS };

/* Of a block: each byte of a sum has those of one column, which compilers add side by side. */
static int count_ends_of_block(const unsigned char *bytes)
{
    uint64_t sums = 0;
    for (int k = 0; k < BLOCK_WORDS; k++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * k, sizeof(word));
        sums += ~word >> 7 & UINT64_C(0x0101010101010101);
    }
    int count = 0;
    for (int shift = 0; shift < 64; shift += 8) count += (int)(sums >> shift & 0xff);
    return count;
}

int64_t lr_petsird_measure(const struct lr_petsird_plan *plan, const unsigned char *bytes, int64_t at_hand,
                           int64_t count)
{
    int64_t left = count * plan->num_values, at = 0;
    while (left >= BLOCK_BYTES && at_hand - at >= BLOCK_BYTES) {
        left -= count_ends_of_block(bytes + at);
        at += BLOCK_BYTES;
    }
    while (left >= 8 && at_hand - at >= 8) {
        left -= count_ends(bytes + at);
        at += 8;
    }
    while (left > 0 && at < at_hand) left -= bytes[at++] < 0x80;
    return left == 0 ? at : -1;
}

/* --- a batch --- */

lr_status lr_petsird_batch_add(struct lr_petsird_batch *batch, const struct lr_petsird_span *span)
{
    const lr_log *log = batch->crystals->petsird->log;
    LR_TRY(lr_grow(&batch->spans, &batch->room_for_spans, batch->num_spans + 1,
                   &(struct lr_items){sizeof(*batch->spans), "lists of events", log}));
    if (batch->num_shares == 0 || batch->num_events - batch->shares[batch->num_shares - 1].first >= LR_PETSIRD_SHARE) {
        LR_TRY(lr_grow(&batch->shares, &batch->room_for_shares, batch->num_shares + 1,
                       &(struct lr_items){sizeof(*batch->shares), "lists of events", log}));
        batch->shares[batch->num_shares++] =
            (struct lr_petsird_share){.begin = batch->num_spans, .first = batch->num_events};
    }
    batch->spans[batch->num_spans] = *span;
    batch->spans[batch->num_spans++].first = batch->num_events;
    batch->num_events += span->count;
    batch->shares[batch->num_shares - 1].end = batch->num_spans;
    return LR_OK;
}

/* Byte by byte. Returns what follows; NULL = the number has more than 64 bits. */
static const unsigned char *take_long(const unsigned char *at, uint64_t *value)
{
    uint64_t found = *at & 0x7f;
    for (int shift = 7; *at++ & 0x80; shift += 7) {
        if (shift == 63 && *at > 1) return NULL;
        found |= (uint64_t)(*at & 0x7f) << shift;
    }
    *value = found;
    return at;
}

static uint64_t eight_bytes(const unsigned char *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

/* Numbers of at most four bytes without branches, since how long they are cannot be foreseen. */
static inline const unsigned char *take_value(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
    const uint64_t word = end - at >= 8 ? eight_bytes(at) : UINT64_MAX;
    const uint64_t ends = ~word & 0x80808080u;
    if (ends == 0) return take_long(at, value);
    const uint64_t upto = ends ^ (ends - 1); /* all bits up to the first end */
    const uint64_t digits = word & upto & 0x7f7f7f7fu;
    *value = (digits & 0x7f) | (digits >> 1 & 0x3f80) | (digits >> 2 & 0x1fc000) | (digits >> 3 & 0xfe00000);
    const uint64_t lengths = upto & 0x01010101u; /* a bit for each byte */
    return at + (lengths * 0x01010101u >> 24 & 0xff);
}

/* As lr_yardl_integer has it. */
static int64_t whole_number(uint64_t number, bool is_signed)
{
    if (is_signed) return number & 1 ? -(int64_t)(number >> 1) - 1 : (int64_t)(number >> 1);
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static inline const unsigned char *take_coincidence(const struct lr_petsird_plan *plan, const unsigned char *at,
                                                    const unsigned char *end,
                                                    struct lr_petsird_coincidence *coincidence)
{
    uint64_t values[LR_PETSIRD_MAX_VALUES];
    for (int k = 0; k < plan->num_values; k++) {
        at = take_value(at, end, &values[k]);
        if (at == NULL) return NULL;
    }
    for (int k = 0; k < 2; k++) coincidence->bins[k] = whole_number(values[plan->at[k]], plan->is_signed[k]);
    coincidence->tof = plan->at[2] >= 0 ? whole_number(values[plan->at[2]], plan->is_signed[2]) : 0;
    return at;
}

static void note_unknown(struct lr_petsird_share *share, int64_t span, int end, int64_t bin)
{
    if (share->num_unknown++ == 0) {
        share->unknown_span = span;
        share->unknown_end = end;
        share->unknown_bin = bin;
    }
}

static void check_mask(const struct lr_petsird_batch *batch, struct lr_petsird_share *share, int64_t span,
                       const struct lr_petsird_coincidence *coincidence)
{
    int64_t modules[2];
    if (!lr_petsird_in_mask(batch->crystals, &batch->spans[span].list, coincidence, modules) &&
        share->num_excluded++ == 0) {
        share->excluded_span = span;
        memcpy(share->excluded, modules, sizeof(modules));
    }
}

/* False for a damage. */
static bool decode_span(const struct lr_petsird_batch *batch, struct lr_petsird_share *share, int64_t number)
{
    const struct lr_petsird_span *span = &batch->spans[number];
    const unsigned char *at = span->bytes;
    lr_event *events = batch->events + share->first;
    for (int64_t k = 0; k < span->count; k++) {
        struct lr_petsird_coincidence coincidence;
        at = take_coincidence(&batch->plan, at, span->end, &coincidence);
        if (at == NULL) return false;
        lr_event *event = &events[share->kept];
        const enum lr_petsird_fate fate = event_of(batch->crystals, &span->list, &coincidence, event);
        if (fate == LR_PETSIRD_DAMAGED) return false;
        if (fate == LR_PETSIRD_UNKNOWN) {
            const int end = event->crystals[0] >= 0;
            note_unknown(share, number, end, coincidence.bins[end]);
            continue;
        }
        if (batch->crystals->has_mask) check_mask(batch, share, number, &coincidence);
        share->kept++;
    }
    share->found[span->list.is_delayed ? 1 : 0] += span->count;
    return true;
}

static void decode_share(struct lr_petsird_batch *batch, struct lr_petsird_share *share)
{
    share->damaged = -1;
    for (int64_t k = share->begin; k < share->end; k++) {
        const struct lr_petsird_share before = *share;
        if (!decode_span(batch, share, k)) {
            *share = before;
            share->damaged = k;
            break;
        }
    }
    if (batch->sink != NULL && batch->sink->look != NULL)
        batch->sink->look(batch->sink->user, batch->events + share->first, share->kept);
}

static void decode_shares(void *user, int64_t begin, int64_t end, int worker)
{
    struct lr_petsird_batch *batch = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) decode_share(batch, &batch->shares[k]);
}

static lr_status make_own_room(struct lr_petsird_batch *batch)
{
    const int64_t most = batch->num_events;
    if (most > batch->room_for_events) {
        free(batch->own);
        batch->room_for_events = 0;
        batch->own = lr_resize(NULL, most, sizeof(*batch->own), "events", batch->crystals->petsird->log);
        if (batch->own == NULL) return LR_FAILED;
        batch->room_for_events = most;
    }
    return LR_OK;
}

lr_status lr_petsird_batch_begin(struct lr_petsird_batch *batch, lr_event *room)
{
    LR_TRY(room == NULL ? make_own_room(batch) : LR_OK);
    batch->events = room != NULL ? room : batch->own;
    batch->decoding = (struct lr_parallel){
        .threads = batch->threads, .count = batch->num_shares, .grain = 1, .body = decode_shares, .user = batch};
    lr_parallel_begin(&batch->decoding);
    return LR_OK;
}

void lr_petsird_batch_end(struct lr_petsird_batch *batch)
{
    lr_parallel_end(&batch->decoding);
}

void lr_petsird_batch_finish(struct lr_petsird_batch *batch)
{
    free(batch->spans);
    free(batch->shares);
    free(batch->own);
}
