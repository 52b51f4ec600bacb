/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Recognises the kind of a file by its first bytes or its name. Lists the names in a folder. Gives paths in the cache
 * folder. */
#include "io/files/file_kind.h"

#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/scanners/scanner_formats.h"
#include "io/sessions/session.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

lr_file_kind lr_file_kind_of(const char *path)
{
    static const char *const data_endings[] = {".hs", ".h5", ".hdf5", NULL};
    static const char histo[] = "\0histo"; /* an entry of the root group's list of names */
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    const lr_events_format format = lr_events_head_format(&head);
    const bool is_hdf5 = lr_head_is_hdf5(&head);

    /* A file may fit several formats. The first that fits is taken. */
    if (format == LR_EVENTS_PETSIRD) return LR_FILE_PETSIRD;
    if (lr_image_recognises(&head) && !lr_siemens_sinogram_recognises(&head)) return LR_FILE_IMAGE;
    if (format != LR_EVENTS_UNKNOWN) return LR_FILE_EVENTS;
    if (lr_view_session_recognises(head.bytes)) return LR_FILE_SESSION;
    if (is_hdf5 && lr_head_holds(&head, histo, sizeof(histo))) return LR_FILE_HISTO;
    /* An Interfile header that does not describe an image describes projection data. */
    if (is_hdf5 || lr_path_ends_in(path, data_endings) || lr_stir_header_recognises(&head)) return LR_FILE_DATA;
    return lr_scanner_recognises(&head) ? LR_FILE_SCANNER : LR_FILE_UNKNOWN;
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

bool lr_notes_place(const char *name, char *path, size_t size)
{
    const char *own = getenv("LORASTER_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_MAX];
    int length = 0;
    if (own != NULL && own[0] != '\0')
        length = strcmp(own, "off") == 0 ? 0 : snprintf(folder, PATH_MAX, "%s", own);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/loraster", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/loraster", home);
    if (length <= 0 || length >= PATH_MAX) return false;

    /* Makes the folder and its parents. A failure is found when the file is opened. */
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777);
        *slash = '/';
    }
    mkdir(folder, 0777);
    length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}
