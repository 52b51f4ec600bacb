/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a CASToR header, or one sentence about bad input; its data are
 * the same bytes. Not part of CTest: as tests/fuzz/scanner_yaml.c. */
#include <lr/events.h>
#include <stdio.h>
#include <stdlib.h>
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

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char folder[64], header[96], data[96];
    lr_status status = LR_OK;
    int64_t events = 0;
    const lr_log log = {note_error, &status};
    const lr_event_sink sink = {.take = drop, .user = &events};
    snprintf(folder, sizeof(folder), "/tmp/loraster-fuzz-%ld", (long)getpid());
    snprintf(header, sizeof(header), "%s.Cdh", folder);
    snprintf(data, sizeof(data), "%s.Cdf", folder);
    write_file(header, bytes, count);
    write_file(data, bytes, count);
    const lr_events_source source = {.path = header, .format = LR_EVENTS_CASTOR, .log = &log};
    const lr_status read = lr_events_read(&source, &sink, NULL);
    if (read != status || (read != LR_OK && read != LR_BAD_INPUT)) abort();
    remove(header);
    remove(data);
    return 0;
}
