/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/c_locale.h"
#include "io/files/presets.h"
#include "io/files/regular_file.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"
#include "io/scanners/scanner_yaml.h"

#include <lr/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The name of a file in this folder that is the preset's but for its ending. */
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
                                                       : lr_scanner_file_read(name_or_path, log);
    lr_c_locale_leave(locale);
    return scanner;
}

lr_scanner_draft *lr_scanner_draft_read(const char *name_or_path, const lr_log *log)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_scanner_draft *draft = is_preset_name(name_or_path) ? lr_scanner_draft_parse(open_preset(name_or_path, log))
                                                           : lr_scanner_draft_file_read(name_or_path, log);
    lr_c_locale_leave(locale);
    return draft;
}

const char *const *lr_scanner_presets(void)
{
    return lr_preset_names;
}
