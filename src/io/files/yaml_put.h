/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pieces of YAML on their way to a file. Failures stay in the output until it is finished. The
 * calling thread's locale must use a decimal point. */
#ifndef LR_IO_YAML_PUT_H
#define LR_IO_YAML_PUT_H

#include "io/files/output.h"

/* At most 511 bytes. */
void lr_yaml_put(struct lr_output *output, const char *format, ...) LR_PRINTF(2, 3);

/* The shortest decimal that is read back as the same number; zero has no sign. */
const char *lr_yaml_number(char text[32], double value);

/* "key: [1, 2.5]" */
void lr_yaml_put_numbers(struct lr_output *output, const char *key, const double *values, int count);

/* A double-quoted scalar, and the end of its line. */
void lr_yaml_put_text(struct lr_output *output, const char *text, size_t length);

#endif
