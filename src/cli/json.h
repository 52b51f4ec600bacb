/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Writes one JSON value to a stream, commas and quotes kept right. Inside an object every value
 * has a key; inside an array the key is NULL. */
#ifndef LR_CLI_JSON_H
#define LR_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    bool wrote; /* something in the innermost open bracket */
};

void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */

/* NULL text becomes null, and so does a number that is not finite. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, double number);
void json_int(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool value);
void json_numbers(struct json *json, const char *key, const double *numbers, int count);
void json_ints(struct json *json, const char *key, const int *numbers, int count);

#endif
