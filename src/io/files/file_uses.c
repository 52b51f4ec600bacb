/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Checks before files are written that no input or other output would be lost. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"

#include <limits.h>
#include <lr/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* LOOKS: number of attempts to find a file whose companion exists. While another program replaces both files, one of
 * the two may be missing for a moment. */
enum { LOOKS = 25, BETWEEN_LOOKS_NS = 20 * 1000 * 1000 };

/* Companions of a file with the ending `of`. The names of the two files differ only in the ending. */
static const struct companion {
    const char *of, *ending;
    bool is_named; /* a line of the file names the companion */
} companions[] = {
    {".hv", ".v", true},
    {".hdr", ".img", true},
    {".mhd", ".raw", true},
    {".hs", ".s", true},
    {".Cdh", ".Cdf", true},
    {".hscan", ".lut", false},
    {".hpm", ".pm", false},
    {".hpm", "_template.s", false},
    {".hpm", "_template.hs", false},
    {".hpm", "_template.v", false},
    {".hpm", "_template.hv", false},
};

enum { NUM_COMPANIONS = sizeof(companions) / sizeof(companions[0]), MOST_LINE = 4096 };

/* Number of lines of a header that are searched. */
enum { MOST_LINES = 10000 };

static bool stat_file(const char *path, struct stat *found)
{
    return stat(path, found) == 0 && S_ISREG(found->st_mode);
}

static bool is_same(const struct stat *file, const char *path)
{
    struct stat other;
    return stat_file(path, &other) && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

/* True if `header` is a text with a line that names the file. */
static bool names_file(const char *header, const struct stat *file, const lr_log *log)
{
    char line[MOST_LINE];
    struct stat found;
    bool names = false, is_text = true;
    FILE *stream = stat_file(header, &found) ? fopen(header, "r") : NULL;
    for (int k = 0; stream != NULL && !names && is_text && k < MOST_LINES && fgets(line, sizeof(line), stream) != NULL;
         k++) {
        /* A line that fgets returns without its end is longer than the buffer or contains a zero byte. Headers have no
           such lines. */
        is_text = strchr(line, '\n') != NULL || feof(stream);
        /* Finds the value in a line "key := value", "key = value" or "key: value". */
        char *value = is_text ? strpbrk(line, ":=") : NULL;
        if (value == NULL) continue;
        value += strspn(value, ":= \t\"'");
        size_t length = strlen(value);
        while (length > 0 && strchr(" \t\r\n\"'", value[length - 1]) != NULL) length--;
        value[length] = '\0';
        char *path = length > 0 ? lr_path_beside(header, value, log) : NULL;
        names = path != NULL && is_same(file, path);
        free(path);
    }
    if (stream != NULL) fclose(stream);
    return names;
}

/* Returns the path of an input. The number of a frame is cut from the path of an image. */
static const char *input_file(const lr_file_uses *uses, int k, char file[PATH_MAX])
{
    snprintf(file, PATH_MAX, "%s", uses->read[k]);
    (void)lr_path_cut_frame(file);
    return file;
}

/* Checks that writing `path` would not destroy an input. with: the file of which `path` is a companion; NULL = none. */
static lr_status check_reads(const lr_file_uses *uses, const char *path, const char *with)
{
    struct stat found;
    if (!stat_file(path, &found)) return LR_OK;
    for (int k = 0; k < uses->num_read; k++) {
        char file[PATH_MAX];
        const char *read = input_file(uses, k, file);
        if (is_same(&found, read)) {
            return lr_error(uses->log, LR_USAGE,
                            "%s%s%s is the input too, which would be lost: give the output another name", path,
                            with != NULL ? ", which goes with " : "", with != NULL ? with : "");
        }
        if (names_file(read, &found, uses->log)) {
            return lr_error(uses->log, LR_USAGE,
                            "%s%s%s belongs to the input %s, and would be lost: give the output another name", path,
                            with != NULL ? ", which goes with " : "", with != NULL ? with : "", read);
        }
    }
    return LR_OK;
}

lr_status lr_files_check(const lr_file_uses *uses)
{
    for (int n = 0; n < uses->num_written; n++) {
        const char *path = uses->written[n];
        LR_TRY(check_reads(uses, path, NULL));
        for (int k = 0; k < NUM_COMPANIONS; k++)
            if (lr_path_ends(path, companions[k].of)) {
                const struct companion *companion = &companions[k];
                struct stat found;
                char *beside = lr_path_with_ending(path, companion->ending, uses->log);
                if (beside == NULL) return LR_FAILED;
                lr_status status = check_reads(uses, beside, path);
                int looks = 0;
                while (status == LR_OK && looks < LOOKS && stat_file(beside, &found) && stat(path, &found) != 0) {
                    nanosleep(&(struct timespec){.tv_nsec = BETWEEN_LOOKS_NS}, NULL);
                    looks++;
                }
                if (looks == LOOKS) {
                    status = lr_error(uses->log, LR_USAGE,
                                      "%s is there and %s is not: what it belongs to is not known, and %s "
                                      "would replace it: give the output another name, or move that file away",
                                      beside, path, path);
                }
                free(beside);
                /* The header of an input must not be replaced, because data are meaningless without their header. */
                for (int r = 0; status == LR_OK && companion->is_named && r < uses->num_read; r++) {
                    char file[PATH_MAX];
                    if (stat_file(input_file(uses, r, file), &found) && names_file(path, &found, uses->log)) {
                        status = lr_error(uses->log, LR_USAGE,
                                          "%s is the header of the input %s, and would be lost: give the output "
                                          "another name",
                                          path, uses->read[r]);
                    }
                }
                LR_TRY(status);
            }

        /* Two outputs must not be one file. Files that do not exist yet are compared by folder and name. */
        for (int k = 0; k < n; k++) {
            const char *other = uses->written[k];
            struct stat found, folders[2];
            bool is_one = stat_file(path, &found);
            if (is_one) {
                is_one = is_same(&found, other);
            } else {
                char *here = lr_path_beside(path, ".", NULL), *there = lr_path_beside(other, ".", NULL);
                is_one = here != NULL && there != NULL && stat(here, &folders[0]) == 0 &&
                         stat(there, &folders[1]) == 0 && folders[0].st_dev == folders[1].st_dev &&
                         folders[0].st_ino == folders[1].st_ino && strcmp(lr_path_name(path), lr_path_name(other)) == 0;
                lr_free_all(here, there);
            }
            if (is_one) {
                return lr_error(uses->log, LR_USAGE, "%s is where two outputs would go: give one of them another name",
                                path);
            }
        }
    }
    return LR_OK;
}
