/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "json.h"

#include <inttypes.h>
#include <math.h>

static void put_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(stream, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            fprintf(stream, "\\u%04x", (unsigned)*c);
        } else {
            fputc(*c, stream);
        }
    }
    fputc('"', stream);
}

static void put_key(struct json *json, const char *key)
{
    if (json->wrote) {
        fputs(", ", json->stream);
    }
    if (key != NULL) {
        put_string(json->stream, key);
        fputs(": ", json->stream);
    }
    json->wrote = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->stream);
    json->wrote = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->stream);
    json->wrote = true;
}

void json_text(struct json *json, const char *key, const char *text)
{
    put_key(json, key);
    if (text != NULL) {
        put_string(json->stream, text);
    } else {
        fputs("null", json->stream);
    }
}

void json_number(struct json *json, const char *key, double number)
{
    put_key(json, key);
    if (isfinite(number)) {
        fprintf(json->stream, "%.12g", number);
    } else {
        fputs("null", json->stream);
    }
}

void json_int(struct json *json, const char *key, int64_t number)
{
    put_key(json, key);
    fprintf(json->stream, "%" PRId64, number);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void json_numbers(struct json *json, const char *key, const double *numbers, int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) {
        json_number(json, NULL, numbers[k]);
    }
    json_close(json, ']');
}

void json_ints(struct json *json, const char *key, const int *numbers, int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) {
        json_int(json, NULL, numbers[k]);
    }
    json_close(json, ']');
}
