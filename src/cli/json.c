/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "json.h"

#include <inttypes.h>
#include <math.h>

/* How many bytes of UTF-8 a character has; 0: this is none, as in names of files (RFC 3629). */
static int character_bytes(const unsigned char *c)
{
    static const struct {
        unsigned char first, last, least, most; /* of the first byte, of the second */
        int count;
    } rows[] = {{0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        if (*c < rows[k].first || *c > rows[k].last) continue;
        bool whole = rows[k].count == 1 || (c[1] >= rows[k].least && c[1] <= rows[k].most);
        for (int b = 2; b < rows[k].count && whole; b++) whole = c[b] >= 0x80 && c[b] <= 0xbf;
        return whole ? rows[k].count : 0;
    }
    return 0;
}

static void put_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        const int count = character_bytes(c);
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (count == 0)
            fputs("\\ufffd", stream);
        else if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
            fprintf(stream, "\\u%04x", (unsigned)(count == 2 ? c[1] : *c)); /* terminals obey it */
        else
            fwrite(c, 1, (size_t)count, stream);
        c += count > 0 ? count : 1;
    }
    fputc('"', stream);
}

static void put_key(struct json *json, const char *key)
{
    if (json->wrote) fputs(", ", json->stream);
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
    if (text != NULL)
        put_string(json->stream, text);
    else
        fputs("null", json->stream);
}

void json_number(struct json *json, const char *key, double number)
{
    put_key(json, key);
    if (isfinite(number))
        fprintf(json->stream, "%.12g", number);
    else
        fputs("null", json->stream);
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
    for (int k = 0; k < count; k++) json_number(json, NULL, numbers[k]);
    json_close(json, ']');
}

void json_ints(struct json *json, const char *key, const int *numbers, int count)
{
    json_open(json, key, '[');
    for (int k = 0; k < count; k++) json_int(json, NULL, numbers[k]);
    json_close(json, ']');
}
