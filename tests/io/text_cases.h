/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Cases of a text file. A section begins with a line "[name]". Each line is a case, whose fields are separated by " | ".
 * In fields, \n and \xHH stand for bytes, and <NAME> for the text of an earlier line "<NAME> = text". Empty lines and
 * lines that begin with # are passed over. */
#pragma once

#include "io/files.h"

#define IO_CASES IO_TESTS "/cases.txt"

enum { CASE_FIELDS = 6, CASE_NAMES = 8 };

struct text_cases {
    char *rest;
    int num_names;
    const char *names[CASE_NAMES], *texts[CASE_NAMES];
    const char *fields[CASE_FIELDS]; /* "" = the case has no such field */
};

/* The text of a section, which ends before an empty line and the next section. */
static inline char *section_of(const char *path, const char *section)
{
    char heading[64];
    snprintf(heading, sizeof(heading), "\n[%s]\n", section);
    char *text = strstr((char *)bytes_read(path, NULL), heading);
    if (text == NULL) fail_msg("%s has no section %s", path, section);
    text += strlen(heading);
    char *end = strstr(text, "\n\n[");
    if (end != NULL) end[1] = '\0';
    return text;
}

static inline struct text_cases cases_of(const char *path, const char *section)
{
    return (struct text_cases){.rest = section_of(path, section)};
}

static inline const char *decoded(const struct text_cases *cases, const char *field)
{
    enum { ROOM_FOR_TEXT = 8192 };
    char *text = kept(ROOM_FOR_TEXT, 1);
    for (int used = 0; *field != '\0';) {
        unsigned byte = (unsigned char)field[0];
        int k = 0, length = 1;
        while (k < cases->num_names && strncmp(field, cases->names[k], strlen(cases->names[k])) != 0) k++;
        if (k < cases->num_names) {
            used += snprintf(text + used, (size_t)(ROOM_FOR_TEXT - used), "%s", cases->texts[k]);
            field += strlen(cases->names[k]);
            assert_true(used < ROOM_FOR_TEXT);
            continue;
        }
        if (strncmp(field, "\\n", 2) == 0) byte = '\n', length = 2;
        if (sscanf(field, "\\x%2x", &byte) == 1) length = 4;
        assert_true(used < ROOM_FOR_TEXT - 1);
        text[used++] = (char)byte;
        field += length;
    }
    return text;
}

/* Reads the next case of the section; returns false after the last one. */
static inline bool next_case(struct text_cases *cases)
{
    while (*cases->rest != '\0') {
        char *line = cases->rest, *field = line;
        cases->rest += strcspn(line, "\n");
        *cases->rest++ = '\0';
        if (line[0] == '<') {
            char *equals = non_null(strstr(line, " = "));
            assert_true(cases->num_names < CASE_NAMES);
            *equals = '\0';
            cases->names[cases->num_names] = line;
            cases->texts[cases->num_names++] = decoded(cases, equals + 3);
        }
        if (line[0] == '<' || line[0] == '#' || line[0] == '\0') continue;
        for (int k = 0; k < CASE_FIELDS; k++) {
            char *bar = strstr(field, " | "), *next = bar != NULL ? bar + 3 : field + strlen(field);
            if (bar != NULL) *bar = '\0';
            cases->fields[k] = decoded(cases, field);
            field = next;
        }
        return true;
    }
    return false;
}
