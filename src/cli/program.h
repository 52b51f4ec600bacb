/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the programs are: verbs, of which one is named, parsed and run. */
#ifndef LR_CLI_PROGRAM_H
#define LR_CLI_PROGRAM_H

#include "args.h"

/* What a verb accepts, and what does its work; reports go to args->report. */
struct cli_verb {
    const struct cli_syntax *syntax;
    lr_status (*run)(struct cli_args *args);
};

/* All of main(): runs the verb that the words after argv[0] name, and returns the exit code. A verb
 * that another program has becomes that program, with the same words, in the same process. `verbs`
 * ends with NULL; one of two words comes before its first word alone. */
int program_main(const struct cli_verb *const *verbs, char *const *argv);

#endif
