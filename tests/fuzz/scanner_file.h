/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the fuzz targets of scanner files share: bytes go to a file in a folder of their own, whose
 * name has the format's ending, and are a scanner or one sentence about bad input. */
#ifndef LR_FUZZ_SCANNER_FILE_H
#define LR_FUZZ_SCANNER_FILE_H

#include <lr/log.h>
#include <lr/scanner.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static inline void fuzz_note(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

/* "folder/x" with the ending; the folder is made once and stays. */
static inline const char *fuzz_path(const char *ending)
{
    static char folder[64];
    static char path[2][128];
    static int turn;
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/lr_fuzz_XXXXXX");
        if (mkdtemp(folder) == NULL) abort();
    }
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/x%s", folder, ending);
    return path[turn];
}

static inline void fuzz_write(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

static inline void fuzz_read(const char *path, lr_scanner *(*read)(const char *path, const lr_log *log))
{
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    lr_scanner *scanner = read(path, &log);
    if ((scanner == NULL) != (status == LR_BAD_INPUT)) abort();
    lr_scanner_destroy(scanner);
}

#endif
