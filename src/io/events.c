/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/io.h>

#include <stdio.h>
#include <string.h>

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

lr_events_format lr_events_recognise(const char *path)
{
    static const char signature[] = "SAFIR CListModeData";
    char start[sizeof(signature)] = "";
    FILE *file = fopen(path, "rb");
    const size_t length = file != NULL ? fread(start, 1, sizeof(start), file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    if (length == sizeof(start) && memcmp(start, signature, sizeof(start)) == 0) {
        return LR_EVENTS_SAFIR;
    }
    if (ends_with(path, ".l")) {
        return LR_EVENTS_SIEMENS;
    }
    return ends_with(path, ".safir") ? LR_EVENTS_SAFIR : LR_EVENTS_UNKNOWN;
}
