/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the program adds to the library's sentences: the options and verbs that answer them, of which the
 * library knows none. */
#ifndef LR_CLI_ADVICE_H
#define LR_CLI_ADVICE_H

#include <lr/log.h>

struct cli_args;

enum { ADVICE_BYTES = 2048 };

/* The sentence with advice, in `text` where there is any. args: the command line; NULL = none is known. */
const char *advice_on(const struct cli_args *args, lr_status status, const char *sentence, char text[ADVICE_BYTES]);

#endif
