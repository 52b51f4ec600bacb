/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/scanner_formats.h"

#include "base/log.h"
#include "base/path.h"
#include "io/events/petsird.h"
#include "io/files/c_locale.h"
#include "io/files/keyed_text.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_yaml.h"

#include <lr/io.h>
#include <stdio.h>
#include <string.h>

static const char *const yaml_endings[] = {".yaml", ".yml", NULL};
static const char *const geom_endings[] = {".geom", NULL};
static const char *const hscan_endings[] = {".hscan", NULL};
static const char *const petsird_endings[] = {".petsird", NULL};

/* The first that recognises a file reads it; YAML, the first row, is what nothing else is. */
static const struct lr_scanner_format formats[] = {
    {"YAML", yaml_endings, NULL, lr_scanner_read_file, lr_scanner_yaml_write},
    {"CASToR .geom", geom_endings, lr_geom_recognises, lr_geom_read, lr_geom_write},
    {"CASToR .hscan", hscan_endings, lr_hscan_recognises, lr_hscan_read, lr_hscan_write},
    {"STIR header", NULL, lr_stir_header_recognises, lr_stir_header_read, NULL},
    {"STIR crystal map", NULL, lr_stir_map_recognises, lr_stir_map_read, NULL},
    {"PETSIRD", petsird_endings, lr_petsird_recognises, lr_petsird_scanner_read, lr_petsird_scanner_write},
};
enum { NUM_FORMATS = sizeof(formats) / sizeof(formats[0]) };

static const struct lr_scanner_format *find(const struct lr_file_head *head)
{
    int k = 1;
    while (k < NUM_FORMATS && !formats[k].recognises(head)) k++;
    return k < NUM_FORMATS ? &formats[k] : NULL;
}

bool lr_scanner_recognises(const struct lr_file_head *head)
{
    return lr_path_ends_in(head->path, yaml_endings) || find(head) != NULL;
}

/* YAML, the first row, when nothing else fits. */
static const struct lr_scanner_format *recognise(const char *path)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    const struct lr_scanner_format *found = find(&head);
    return found != NULL ? found : &formats[0];
}

lr_scanner *lr_scanner_file_read(const char *path, const lr_log *log)
{
    struct lr_named_log named;
    lr_log_name(&named, path, log);
    return recognise(path)->read(path, &named.log);
}

lr_scanner_draft *lr_scanner_draft_file_read(const char *path, const lr_log *log)
{
    const struct lr_scanner_format *format = recognise(path);
    if (format == &formats[0]) return lr_scanner_draft_parse(lr_yaml_read(path, log));
    lr_scanner *scanner = lr_scanner_file_read(path, log);
    lr_scanner_draft *draft = scanner != NULL ? lr_scanner_draft_create(scanner, log) : NULL;
    lr_scanner_destroy(scanner);
    return draft;
}

static const struct lr_scanner_format *find_writer(const char *path)
{
    for (int k = 0; k < NUM_FORMATS; k++)
        if (formats[k].endings != NULL && lr_path_ends_in(path, formats[k].endings)) return &formats[k];
    return NULL;
}

lr_status lr_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    const struct lr_scanner_format *format = find_writer(path);
    if (format == NULL) {
        char known[256] = "";
        for (int k = 0; k < NUM_FORMATS; k++) {
            for (int e = 0; formats[k].endings != NULL && formats[k].endings[e] != NULL; e++) {
                const size_t used = strlen(known);
                snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", formats[k].endings[e]);
            }
        }
        return lr_error(log, LR_USAGE, "%s: a scanner's format is told from the file's ending: give one of %s", path,
                        known);
    }
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = format->write(path, scanner, log);
    lr_c_locale_leave(locale);
    return status;
}
