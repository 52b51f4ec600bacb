/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/tickets.h"

#include <string.h>

enum { DIGIT_BITS = 11, NUM_DIGITS = 1 << DIGIT_BITS };

/* A stable pass of a radix sort. */
static void sort_by_digit(const struct lr_listmode_ticket *from, struct lr_listmode_ticket *to,
                          int64_t count, int shift)
{
    int64_t places[NUM_DIGITS] = {0}, sum = 0;
    for (int64_t k = 0; k < count; k++) {
        places[from[k].key >> shift & (NUM_DIGITS - 1)]++;
    }
    for (int digit = 0; digit < NUM_DIGITS; digit++) {
        const int64_t here = places[digit];
        places[digit] = sum;
        sum += here;
    }
    for (int64_t k = 0; k < count; k++) {
        to[places[from[k].key >> shift & (NUM_DIGITS - 1)]++] = from[k];
    }
}

void lr_listmode_sort_tickets(struct lr_listmode_ticket *tickets, struct lr_listmode_ticket *spare,
                              int64_t count)
{
    sort_by_digit(tickets, spare, count, 0);
    sort_by_digit(spare, tickets, count, DIGIT_BITS);
    sort_by_digit(tickets, spare, count, 2 * DIGIT_BITS);
    memcpy(tickets, spare, (size_t)count * sizeof(*tickets));
}
