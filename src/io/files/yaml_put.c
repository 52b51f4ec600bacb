/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/yaml_put.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void lr_yaml_put(struct lr_output *output, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length > 0) lr_output_write(output, text, (size_t)length);
}

const char *lr_yaml_number(char text[32], double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value == 0 ? 0.0 : value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}

void lr_yaml_put_numbers(struct lr_output *output, const char *key, const double *values, int count)
{
    char text[32];
    lr_yaml_put(output, "%s: [", key);
    for (int k = 0; k < count; k++) lr_yaml_put(output, "%s%s", k ? ", " : "", lr_yaml_number(text, values[k]));
    lr_yaml_put(output, "]");
}

void lr_yaml_put_text(struct lr_output *output, const char *text, size_t length)
{
    lr_yaml_put(output, "\"");
    for (size_t k = 0; k < length; k++) {
        const unsigned char c = (unsigned char)text[k];
        if (c == '"' || c == '\\')
            lr_yaml_put(output, "\\%c", c);
        else if (c < 32 || c == 127)
            lr_yaml_put(output, "\\x%02x", c);
        else
            lr_output_write(output, &text[k], 1);
    }
    lr_yaml_put(output, "\"\n");
}
