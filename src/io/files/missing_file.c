/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/missing_file.h"
#include "base/path.h"
#include "io/images/formats.h"

#include "io/files/file_kind.h"
#include "io/files/output.h"
#include "io/scanners/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Of longer folders the first names will do. */
enum { MOST_NAMES = 20000, LONGEST_PATH = 300 };

/* More of the longer name's letters than this must be alike, or it says nothing. */
static const double most_changed = 0.4;

/* --- the nearest name --- */

/* Splits at the last slash; "." where there is none. Returns the name. */
static const char *split(const char *path, char folder[LONGEST_PATH])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        snprintf(folder, LONGEST_PATH, ".");
        return path;
    }
    const int length = slash == path ? 1 : (int)(slash - path);
    snprintf(folder, LONGEST_PATH, "%.*s", length, path);
    return slash + 1;
}

static bool has_stem_of(const char *name, const char *other)
{
    const char *dot = strchr(name, '.');
    const size_t length = dot != NULL ? (size_t)(dot - name) : strlen(name);
    return length >= 2 && strncmp(name, other, length) == 0 && (other[length] == '.' || other[length] == '\0');
}

/* How much of a name would have to change; another ending counts for little. */
static double change(const char *name, const char *other)
{
    const double share = lr_share_to_change(name, other);
    return has_stem_of(name, other) ? 0.5 * share * most_changed : share;
}

/* The name in the folder that is most like `name`; "" for none. */
static void find_nearest(const char *folder, const char *name, char nearest[LR_FILE_NAME])
{
    double least = most_changed;
    DIR *open = opendir(folder);
    nearest[0] = '\0';
    if (open == NULL || name[0] == '\0') name = NULL;
    int left = name != NULL ? MOST_NAMES : 0;
    for (const struct dirent *entry = NULL; left > 0; left--) {
        entry = readdir(open);
        if (entry == NULL) break;
        const double share = entry->d_name[0] == '.' ? 1 : change(name, entry->d_name);
        /* The order in which a folder gives its names tells nothing. */
        if (share < least || (share == least && nearest[0] != '\0' && strcmp(entry->d_name, nearest) < 0)) {
            least = share;
            snprintf(nearest, LR_FILE_NAME, "%s", entry->d_name);
        }
    }
    if (open != NULL) closedir(open);
}

static void tell_missing(const char *path, char text[LR_OPEN_FAILURE])
{
    char folder[LONGEST_PATH], nearest[LR_FILE_NAME];
    struct stat facts;
    const char *name = split(path, folder);
    const bool is_here = strcmp(folder, ".") == 0;
    if (stat(folder, &facts) != 0) {
        snprintf(text, LR_OPEN_FAILURE, "No such file, for there is no folder %s", folder);
        return;
    }
    find_nearest(folder, name, nearest);
    if (nearest[0] == '\0') {
        snprintf(text, LR_OPEN_FAILURE, "No such file in %s, nor a name like it", is_here ? "this folder" : folder);
    } else {
        const bool is_root = strcmp(folder, "/") == 0;
        snprintf(text, LR_OPEN_FAILURE, "No such file in %s" LR_OPEN_HINT " %s%s%s?", is_here ? "this folder" : folder,
                 is_here ? "" : folder, is_here || is_root ? "" : "/", nearest);
    }
}

const char *lr_open_failure(const char *path, int error, char text[LR_OPEN_FAILURE])
{
    char words[128];
    if (error == ENOENT) {
        tell_missing(path, text);
    } else if (error == ENOTDIR) {
        char folder[LONGEST_PATH];
        (void)split(path, folder);
        snprintf(text, LR_OPEN_FAILURE, "%s is a file and no folder", folder);
    } else if (error == EACCES) {
        snprintf(text, LR_OPEN_FAILURE, "the right to read it is missing: chmod, or a copy of your own, helps");
    } else {
        snprintf(text, LR_OPEN_FAILURE, "%s", lr_error_text(error, words));
    }
    return text;
}
