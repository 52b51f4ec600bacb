/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/scanner_formats.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/petsird.h"
#include "io/files/c_locale.h"
#include "io/files/keyed_text.h"
#include "io/files/presets.h"
#include "io/files/regular_file.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_yaml.h"

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

static lr_scanner *scanner_file_read(const char *path, const lr_log *log)
{
    struct lr_named_log named;
    lr_log_name(&named, path, log);
    return recognise(path)->read(path, &named.log);
}

/* Reads a file of any format (the thread's locale has a decimal point); YAML where no other one
 * recognises it. */
static lr_scanner_draft *scanner_draft_file_read(const char *path, const lr_log *log)
{
    const struct lr_scanner_format *format = recognise(path);
    if (format == &formats[0]) return lr_scanner_draft_parse(lr_yaml_read(path, log));
    lr_scanner *scanner = scanner_file_read(path, log);
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

static bool is_preset_name(const char *name)
{
    return strpbrk(name, "/.") == NULL;
}

/* The preset's file in the folder that LORASTER_ASSETS names, or NULL. To be freed. */
static char *find_override(const char *name, const lr_log *log)
{
    const char *folder = getenv("LORASTER_ASSETS");
    if (folder == NULL || folder[0] == '\0') return NULL;
    const size_t bytes = strlen(folder) + strlen(name) + sizeof("/scanners/.yaml");
    char *path = lr_alloc((int64_t)bytes, 1, "a path", log);
    if (path == NULL) return NULL;
    snprintf(path, bytes, "%s/scanners/%s.yaml", folder, name);
    if (access(path, F_OK) != 0) {
        free(path);
        return NULL;
    }
    return path;
}

static const struct lr_preset *find_builtin(const char *name)
{
    for (int k = 0; k < lr_num_presets; k++)
        if (strcmp(lr_preset_table[k].name, name) == 0) return &lr_preset_table[k];
    return NULL;
}

/* The name of a file in this folder that is the preset's except for its ending. */
static bool find_file(const char *name, char file[256])
{
    static const char *const endings[] = {".yaml", ".yml", ".petsird", ".hscan", ".geom"};
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
        const int length = snprintf(file, 256, "%s%s", name, endings[k]);
        if (length < 256 && access(file, R_OK) == 0) return true;
    }
    return false;
}

/* The nearest name, or else one that has the last part of it: "biograph-mmr". */
static const char *find_near(const char *name)
{
    const char *near = lr_nearest_word(name, lr_preset_names, (size_t)lr_num_presets);
    const char *part = name + strlen(name);
    while (part > name && strchr("-_ ", part[-1]) == NULL) part--;
    return near != NULL || strlen(part) < 3 ? near : lr_nearest_word(part, lr_preset_names, (size_t)lr_num_presets);
}

static void refuse_name(const char *name, const lr_log *log)
{
    char file[256];
    const char *near = find_near(name);
    if (name[0] != '\0' && find_file(name, file)) {
        lr_error(log, LR_BAD_INPUT,
                 "no scanner preset is named '%s'; did you mean the file %s? A file needs its "
                 "whole name",
                 name, file);
        return;
    }
    if (name[0] == '\0') {
        lr_error(log, LR_BAD_INPUT, "no scanner is named: give a preset's name or a YAML file");
    } else if (near != NULL) {
        lr_error(log, LR_BAD_INPUT,
                 "no scanner preset is named '%s'; did you mean '%s'? A file needs a slash or a "
                 "dot in its name: ./%s",
                 name, near, name);
    } else {
        char known[512] = "";
        for (int k = 0; k < lr_num_presets; k++) {
            const size_t used = strlen(known);
            snprintf(known + used, sizeof(known) - used, "%s%s", k ? ", " : "", lr_preset_names[k]);
        }
        lr_error(log, LR_BAD_INPUT,
                 "no scanner preset is named '%s': choose one of %s; a file needs a slash or a dot "
                 "in its name: ./%s",
                 name, known, name);
    }
}

/* The preset's text, from the folder of assets or built in. */
static struct lr_yaml *open_preset(const char *name, const lr_log *log)
{
    char *path = find_override(name, log);
    if (path != NULL) {
        struct lr_yaml *yaml = lr_yaml_read(path, log);
        free(path);
        return yaml;
    }
    const struct lr_preset *preset = find_builtin(name);
    if (preset == NULL) {
        refuse_name(name, log);
        return NULL;
    }
    return lr_yaml_parse(preset->name, preset->text, (int64_t)strlen(preset->text), log);
}

lr_scanner *lr_scanner_read(const char *name_or_path, const lr_log *log)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_scanner *scanner = is_preset_name(name_or_path) ? lr_scanner_parse(open_preset(name_or_path, log))
                                                       : scanner_file_read(name_or_path, log);
    lr_c_locale_leave(locale);
    return scanner;
}

lr_scanner_draft *lr_scanner_draft_read(const char *name_or_path, const lr_log *log)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_scanner_draft *draft = is_preset_name(name_or_path) ? lr_scanner_draft_parse(open_preset(name_or_path, log))
                                                           : scanner_draft_file_read(name_or_path, log);
    lr_c_locale_leave(locale);
    return draft;
}

const char *const *lr_scanner_presets(void)
{
    return lr_preset_names;
}
