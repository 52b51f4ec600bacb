/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/file_kind.h"

#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/scanners/scanner_formats.h"
#include "io/sessions/run_record.h"
#include "io/sessions/session.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header of Interfile that is no image's is one of projection data. */
static bool is_data(const struct lr_file_head *head)
{
    static const char *const endings[] = {".hs", ".h5", ".hdf5", NULL};
    return lr_path_ends_in(head->path, endings) || lr_head_is_hdf5(head) || lr_stir_header_recognises(head);
}

/* HDF5 with the group /histo: its name stands in the root group's list of names. */
static bool is_histo(const struct lr_file_head *head)
{
    static const char name[] = "\0histo";
    return lr_head_is_hdf5(head) && lr_head_holds(head, name, sizeof(name));
}

static bool is_session(const struct lr_file_head *head)
{
    return lr_view_session_recognises(head->bytes);
}

static bool is_run(const struct lr_file_head *head)
{
    return lr_run_record_recognises(head->bytes);
}

static bool is_petsird(const struct lr_file_head *head)
{
    return lr_events_head_format(head) == LR_EVENTS_PETSIRD;
}

static bool is_events(const struct lr_file_head *head)
{
    return lr_events_head_format(head) != LR_EVENTS_UNKNOWN;
}

lr_file_kind lr_file_kind_of(const char *path)
{
    /* The first that fits is meant. */
    static const struct {
        lr_file_kind kind;
        bool (*is)(const struct lr_file_head *head);
    } kinds[] = {
        {LR_FILE_PETSIRD, is_petsird}, {LR_FILE_IMAGE, lr_image_recognises},
        {LR_FILE_EVENTS, is_events},   {LR_FILE_SESSION, is_session},
        {LR_FILE_RUN, is_run},         {LR_FILE_HISTO, is_histo},
        {LR_FILE_DATA, is_data},       {LR_FILE_SCANNER, lr_scanner_recognises},
    };
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        if (kinds[k].is(&head)) return kinds[k].kind;
    return LR_FILE_UNKNOWN;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

int lr_file_names(const char *folder, char names[][LR_FILE_NAME], int most)
{
    DIR *open = opendir(folder);
    int count = 0;
    if (open == NULL) return 0;
    for (const struct dirent *entry = readdir(open); entry != NULL && count < most; entry = readdir(open))
        snprintf(names[count++], LR_FILE_NAME, "%s", entry->d_name);
    closedir(open);
    qsort(names, (size_t)count, LR_FILE_NAME, compare_names);
    return count;
}
