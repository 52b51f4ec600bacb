/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are PETSIRD events and a scanner, or one sentence about bad input.
 * Half of the inputs get magic, version and the schema v0.9.1 put before them, so that what stands
 * behind it is reached. Not part of CTest: as tests/fuzz/scanner_yaml.c; run it on PETSIRD files. */
#include "io/events/petsird.h"

#include <lr/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void note_error(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

static lr_status drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

static void write_input(const char *path, const uint8_t *bytes, size_t count)
{
    const char *schema = lr_petsird_schema_text("0.9.1");
    const unsigned length = (unsigned)strlen(schema); /* two digits in base 128 */
    FILE *file = fopen(path, "wb");
    if (file == NULL) abort();
    if (count > 0 && bytes[0] % 2 == 0 && bytes[0] != 'y') {
        fprintf(file, "yardl%c%c%c%c%c%c%s", 1, 0, 0, 0, length % 128 + 128, length / 128, schema);
        bytes++;
        count--;
    }
    if ((count > 0 && fwrite(bytes, 1, count, file) != count) || fclose(file) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    int64_t events = 0;
    const lr_log log = {note_error, &status};
    const lr_event_sink sink = {.take = drop, .user = &events};
    snprintf(path, sizeof(path), "/tmp/loraster-fuzz-%ld.petsird", (long)getpid());
    write_input(path, bytes, count);
    const lr_events_source source = {.path = path, .format = LR_EVENTS_PETSIRD, .log = &log};
    const lr_status read = lr_events_read(&source, &sink, NULL);
    if (read != status || (read != LR_OK && read != LR_BAD_INPUT)) abort();
    status = LR_OK;
    lr_scanner *scanner = lr_scanner_read(path, &log);
    if ((scanner == NULL) != (status == LR_BAD_INPUT)) abort();
    lr_scanner_destroy(scanner);
    remove(path);
    return 0;
}
