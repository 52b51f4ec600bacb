/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Advice that the program adds to the library's messages: its options and verbs, which the library does not
 * know. */
#ifndef LR_CLI_ADVICE_H
#define LR_CLI_ADVICE_H

#include <lr/log.h>

struct cli_args;

enum { ADVICE_BYTES = 2048 };

/* The message with advice, in `text` if there is any. args: the command line; NULL = not known */
const char *advice_on(const struct cli_args *args, lr_status status, const char *sentence, char text[ADVICE_BYTES]);

#endif
