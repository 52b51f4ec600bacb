/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a command line is going to write, looked at before anything is done. */
#ifndef LR_CLI_OUTPUTS_H
#define LR_CLI_OUTPUTS_H

#include "common.h"

/* Every output that the verb's syntax declares has an ending of its kind and a folder to lie in, and is
 * neither an input nor what belongs to one (lr_files_check): inputs are all other words that name files.
 * errors: LR_USAGE, LR_FAILED. */
lr_status outputs_check(const struct cli_args *args);

/* The same for one more name, which follows from those; one that no file has loses nothing. */
lr_status outputs_check_name(const struct cli_args *args, const char *path);

/* Images of iterations that are written beside an output (common_iteration_path): every so many (0 = none)
 * of those after `range[0]`, up to range[1]. */
lr_status outputs_check_iterations(const struct cli_args *args, const char *output, int every, const int range[2]);

#endif
