/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_NEAREST_H
#define LR_IO_NEAREST_H

#include <stddef.h>

/* The one of `words` that a person who wrote `word` most likely meant, or NULL when none is near:
 * a word that contains it, or else the one with the fewest letters to change, units (_mm, _deg,
 * _ps) left aside, as long as that is at most half of its letters. Capitals do not matter. Pure. */
const char *lr_nearest_word(const char *word, const char *const *words, size_t num_words);

/* The share of letters to change that makes one word of another, by the longer one's letters; 0 =
 * the same but for capitals. Pure. */
double lr_share_to_change(const char *word, const char *other);

#endif
