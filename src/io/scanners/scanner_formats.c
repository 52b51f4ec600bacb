/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/scanner_formats.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/petsird.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/files/yaml.h"

#include <lr/io.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const yaml_endings[] = {".yaml", ".yml", NULL};
static const char *const geom_endings[] = {".geom", NULL};
static const char *const hscan_endings[] = {".hscan", NULL};
static const char *const petsird_endings[] = {".petsird", NULL};

/* The first format that recognises a file reads it. A file that no format recognises is read as YAML, the first row. */
static const struct lr_scanner_format formats[] = {
    {"YAML", yaml_endings, NULL, lr_scanner_read_file, lr_scanner_yaml_write},
    {"CASToR .geom", geom_endings, lr_geom_recognises, lr_geom_read, lr_geom_write},
    {"CASToR .hscan", hscan_endings, lr_hscan_recognises, lr_hscan_read, lr_hscan_write},
    {"STIR header", NULL, lr_stir_header_recognises, lr_stir_header_read, NULL},
    {"STIR crystal map", NULL, lr_stir_map_recognises, lr_stir_map_read, NULL},
    {"PETSIRD", petsird_endings, lr_petsird_recognises, lr_petsird_scanner_read, lr_petsird_scanner_write},
    {"SAFIR", NULL, lr_safir_recognises, lr_safir_scanner_read, NULL},
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

static const struct lr_scanner_format *recognise(const char *path)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    const struct lr_scanner_format *found = find(&head);
    return found != NULL ? found : &formats[0];
}

static lr_scanner *scanner_file_read(const char *path, const lr_log *log)
{
    struct lr_named_log named;
    lr_log_name(&named, path, log);
    return recognise(path)->read(path, &named.log);
}

lr_status lr_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    const struct lr_scanner_format *format = formats, *const end = formats + NUM_FORMATS;
    while (format < end && (format->endings == NULL || !lr_path_ends_in(path, format->endings))) format++;
    if (format == end) {
        char known[256] = "";
        for (int k = 0; k < NUM_FORMATS; k++)
            for (int e = 0; formats[k].endings != NULL && formats[k].endings[e] != NULL; e++)
                lr_names_add(known, sizeof(known), formats[k].endings[e]);
        return lr_error(log, LR_USAGE, "%s: a scanner's format is told from the file's ending: give one of %s", path,
                        known);
    }
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = format->write(path, scanner, log);
    lr_c_locale_leave(locale);
    return status;
}

/* Opens a preset's text from the folder $LORASTER_ASSETS. If the text is not there, opens the built-in text. errors:
   NULL, logged. */
static struct lr_yaml *open_preset(const char *name, const lr_log *log)
{
    const char *folder = getenv("LORASTER_ASSETS");
    if (folder != NULL && folder[0] != '\0') {
        const size_t bytes = strlen(folder) + strlen(name) + sizeof("/scanners/.yaml");
        char *path = lr_alloc((int64_t)bytes, 1, "a path", log);
        if (path != NULL) snprintf(path, bytes, "%s/scanners/%s.yaml", folder, name);
        const bool is_there = path != NULL && access(path, F_OK) == 0;
        struct lr_yaml *yaml = is_there ? lr_yaml_read(path, log) : NULL;
        free(path);
        if (is_there) return yaml;
    }
    for (int k = 0; k < lr_num_presets; k++) {
        const struct lr_preset *preset = &lr_preset_table[k];
        if (strcmp(preset->name, name) == 0)
            return lr_yaml_parse(name, preset->text, (int64_t)strlen(preset->text), log);
    }
    if (name[0] == '\0') {
        lr_error(log, LR_BAD_INPUT, "no scanner is named: give a preset's name or a YAML file");
        return NULL;
    }

    /* Looks in the current folder for a file that has the preset's name and one of the endings. */
    static const char *const endings[] = {".yaml", ".yml", ".petsird", ".hscan", ".geom"};
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
        char file[256];
        const int length = snprintf(file, sizeof(file), "%s%s", name, endings[k]);
        if (length < (int)sizeof(file) && access(file, R_OK) == 0) {
            lr_error(log, LR_BAD_INPUT,
                     "no scanner preset is named '%s'; did you mean the file %s? A file needs its whole name", name,
                     file);
            return NULL;
        }
    }

    /* Suggests the name nearest to `name`, or else nearest to its last part, such as "mmr" of "biograph-mmr". */
    const char *near = lr_nearest_word(name, lr_preset_names, (size_t)lr_num_presets);
    const char *part = name + strlen(name);
    while (part > name && strchr("-_ ", part[-1]) == NULL) part--;
    if (near == NULL && strlen(part) >= 3) near = lr_nearest_word(part, lr_preset_names, (size_t)lr_num_presets);
    char known[512] = "", inside[512];
    snprintf(inside, sizeof(inside), "%s/scanner.yaml", name); /* in a folder that `sample get` has made */
    if (near == NULL && access(inside, F_OK) == 0) {
        lr_error(log, LR_BAD_INPUT, "%s is a folder: did you mean %s?", name, inside);
        return NULL;
    }
    for (int k = 0; k < lr_num_presets; k++) lr_names_add(known, sizeof(known), lr_preset_names[k]);
    if (near != NULL) {
        lr_error(log, LR_BAD_INPUT,
                 "no scanner preset is named '%s'; did you mean '%s'? A file needs a slash or a dot in its name: ./%s",
                 name, near, name);
    } else {
        lr_error(log, LR_BAD_INPUT,
                 "no scanner preset is named '%s': choose one of %s; a file needs a slash or a dot in its name: ./%s",
                 name, known, name);
    }
    return NULL;
}

lr_scanner *lr_scanner_read(const char *name_or_path, const lr_log *log)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    const bool is_preset = strpbrk(name_or_path, "/.") == NULL;
    lr_scanner *scanner =
        is_preset ? lr_scanner_parse(open_preset(name_or_path, log)) : scanner_file_read(name_or_path, log);
    lr_c_locale_leave(locale);
    return scanner;
}

lr_scanner_draft *lr_scanner_draft_read(const char *name_or_path, const lr_log *log)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_scanner_draft *draft = NULL;
    if (strpbrk(name_or_path, "/.") == NULL) {
        draft = lr_scanner_draft_parse(open_preset(name_or_path, log));
    } else if (recognise(name_or_path) == &formats[0]) {
        draft = lr_scanner_draft_parse(lr_yaml_read(name_or_path, log));
    } else {
        lr_scanner *scanner = scanner_file_read(name_or_path, log);
        draft = scanner != NULL ? lr_scanner_draft_create(scanner, log) : NULL;
        lr_scanner_destroy(scanner);
    }
    lr_c_locale_leave(locale);
    return draft;
}

lr_status lr_scanner_locate(const char *name_or_path, lr_diagnosis *diagnosis, const lr_log *log)
{
    if (diagnosis->num_suspects == 0 || strpbrk(name_or_path, "/.") == NULL || recognise(name_or_path) != &formats[0])
        return LR_OK;
    const struct lr_c_locale locale = lr_c_locale_enter();
    struct lr_yaml *yaml = lr_yaml_read(name_or_path, log);
    const lr_status status = yaml != NULL ? lr_scanner_yaml_locate(yaml, diagnosis) : LR_FAILED;
    lr_c_locale_leave(locale);
    return status;
}

const char *const *lr_scanner_presets(void)
{
    return lr_preset_names;
}
