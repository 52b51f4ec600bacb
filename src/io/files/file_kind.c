/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/file_kind.h"

#include "base/path.h"
#include "io/images/formats.h"
#include "io/scanners/scanner_formats.h"
#include "io/sessions/session.h"

#include <dirent.h>
#include <lr/events.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const struct lr_file_head *head, const void *start, size_t bytes)
{
    return head->count >= bytes && memcmp(head->bytes, start, bytes) == 0;
}

static bool is_image(const struct lr_file_head *head)
{
    static const char *const endings[] = {".nii", ".nii.gz", ".hv",  ".mhd",
                                          ".mha", ".npy",    ".hdr", NULL};
    return lr_path_ends_in(head->path, endings) || begins(head, "ObjectType", 10) ||
           begins(head, "NDims", 5) || begins(head, "\x93NUMPY", 6);
}

/* A header of Interfile that is no image's is one of projection data. */
static bool is_data(const struct lr_file_head *head)
{
    static const char *const endings[] = {".hs", ".h5", ".hdf5", NULL};
    return lr_path_ends_in(head->path, endings) || begins(head, "\x89HDF\r\n\x1a\n", 8) ||
           lr_stir_header_recognises(head);
}

/* HDF5 with the group /histo: its name stands in the root group's list of names. */
static bool is_histo(const struct lr_file_head *head)
{
    static const char name[] = "\0histo";
    if (!begins(head, "\x89HDF\r\n\x1a\n", 8)) {
        return false;
    }
    for (size_t at = 0; at + sizeof(name) <= head->count; at++) {
        if (memcmp(head->bytes + at, name, sizeof(name)) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_scanner(const struct lr_file_head *head)
{
    static const char *const endings[] = {".yaml", ".yml", NULL};
    return lr_path_ends_in(head->path, endings) || lr_geom_recognises(head) ||
           lr_hscan_recognises(head) || lr_stir_map_recognises(head);
}

enum lr_file_kind lr_file_kind_of(const char *path)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    const lr_events_format events = lr_events_recognise(path);
    if (events == LR_EVENTS_PETSIRD) {
        return LR_FILE_PETSIRD;
    }
    if (is_image(&head)) {
        return LR_FILE_IMAGE;
    }
    if (events != LR_EVENTS_UNKNOWN) {
        return LR_FILE_EVENTS;
    }
    if (lr_view_session_recognises(head.bytes)) {
        return LR_FILE_SESSION;
    }
    if (is_histo(&head)) {
        return LR_FILE_HISTO;
    }
    return is_data(&head) ? LR_FILE_DATA : is_scanner(&head) ? LR_FILE_SCANNER : LR_FILE_UNKNOWN;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

int lr_file_names(const char *folder, char names[][LR_FILE_NAME], int most)
{
    DIR *open = opendir(folder);
    int count = 0;
    if (open == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(open); entry != NULL && count < most;
         entry = readdir(open)) {
        snprintf(names[count++], LR_FILE_NAME, "%s", entry->d_name);
    }
    closedir(open);
    qsort(names, (size_t)count, LR_FILE_NAME, compare_names);
    return count;
}
