/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A radix sort. Threads take parts of the tickets that follow each other: where a part's tickets with a digit
 * go is known from what all parts have of each digit. */
#include "listmode/tickets.h"

#include "base/parallel.h"

#include <stdbool.h>
#include <string.h>

enum {
    DIGIT_BITS = 11,
    NUM_DIGITS = 1 << DIGIT_BITS,
    NUM_PASSES = 3,
    MOST_PARTS = 16,
    LEAST_PART = 1 << 14 /* smaller ones are not worth a thread */
};

struct pass {
    const struct lr_listmode_ticket *from;
    struct lr_listmode_ticket *to;
    int64_t count, part; /* part: tickets of each but the last */
    int shift, threads, num_parts;
    int64_t places[MOST_PARTS][NUM_DIGITS]; /* how many a part has, then where the next one goes */
};

static uint32_t digit_of(const struct pass *pass, int64_t k)
{
    return pass->from[k].key >> pass->shift & (NUM_DIGITS - 1);
}

static void count_part(void *user, int64_t begin, int64_t end, int worker)
{
    struct pass *pass = user;
    int64_t *places = pass->places[begin / pass->part];
    (void)worker;
    memset(places, 0, sizeof(pass->places[0]));
    for (int64_t k = begin; k < end; k++) places[digit_of(pass, k)]++;
}

static void move_part(void *user, int64_t begin, int64_t end, int worker)
{
    struct pass *pass = user;
    int64_t *places = pass->places[begin / pass->part];
    (void)worker;
    for (int64_t k = begin; k < end; k++) pass->to[places[digit_of(pass, k)]++] = pass->from[k];
}

/* From counts to places; false: all have one digit, and are in order. */
static bool find_places(struct pass *pass)
{
    int64_t sum = 0;
    for (int digit = 0; digit < NUM_DIGITS; digit++) {
        const int64_t before = sum;
        for (int part = 0; part < pass->num_parts; part++) {
            const int64_t here = pass->places[part][digit];
            pass->places[part][digit] = sum;
            sum += here;
        }
        if (sum - before == pass->count) return false;
    }
    return true;
}

/* Stable. false: nothing was to be moved. */
static bool sort_by_digit(struct pass *pass)
{
    lr_parallel_for(pass->threads, pass->count, pass->part, count_part, pass);
    if (!find_places(pass)) return false;
    lr_parallel_for(pass->threads, pass->count, pass->part, move_part, pass);
    return true;
}

void lr_listmode_sort_tickets(struct lr_listmode_ticket *tickets, struct lr_listmode_ticket *spare, int64_t count,
                              int threads)
{
    const int64_t most = count / LEAST_PART < MOST_PARTS ? count / LEAST_PART : MOST_PARTS;
    const int64_t parts = threads < most ? threads : most;
    struct lr_listmode_ticket *from = tickets, *to = spare;
    struct pass pass; /* large, and not to be cleared as a whole */
    pass.count = count;
    pass.num_parts = parts > 1 ? (int)parts : 1;
    pass.part = (count + pass.num_parts - 1) / pass.num_parts;
    pass.threads = pass.num_parts;
    for (int k = 0; count > 1 && k < NUM_PASSES; k++) {
        pass.from = from;
        pass.to = to;
        pass.shift = k * DIGIT_BITS;
        if (sort_by_digit(&pass)) {
            to = from;
            from = to == tickets ? spare : tickets;
        }
    }
    if (from != tickets) memcpy(tickets, from, (size_t)count * sizeof(*tickets));
}
