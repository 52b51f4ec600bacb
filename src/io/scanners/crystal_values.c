/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One number per crystal, read from a NumPy array (format versions 1.0 to 3.0) or from text. */
#include "base/log.h"
#include "base/mem.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"
#include "io/files/npy.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"

#include <float.h>
#include <lr/direct.h>
#include <lr/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 64 };

struct reader {
    const char *path;
    const lr_log *log;
    const lr_scanner *scanner;
    FILE *file;
    float *values;
    int64_t count; /* numbers read so far */
    int line;      /* current line of a text; 0 = an array */
};

/* --- values --- */

static lr_status wrong_count(const struct reader *reader, int64_t count)
{
    return lr_error(reader->log, LR_BAD_INPUT,
                    "%s: holds %lld numbers where %s has %d crystals: give one for each, in the order of the scanner's",
                    reader->path, (long long)count, reader->scanner->name, reader->scanner->num_crystals);
}

/* Stores one number. Numbers beyond the last crystal are only counted. */
static lr_status keep(struct reader *reader, double value)
{
    char place[32] = "";
    if (reader->line > 0) snprintf(place, sizeof(place), ":%d", reader->line);
    if (!isfinite(value) || value < 0 || value > (double)FLT_MAX) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s%s: the number of crystal %lld is %g: it must be finite and not negative", reader->path,
                        place, (long long)reader->count, value);
    }
    if (reader->count < reader->scanner->num_crystals) reader->values[reader->count] = (float)value;
    reader->count++;
    return LR_OK;
}

/* --- the file --- */

static lr_status read_file(struct reader *reader, bool is_array)
{
    if (is_array) {
        struct lr_npy_header header;
        unsigned char raw[8];
        LR_TRY(lr_npy_header_read(reader->file, reader->path, &header, reader->log));
        if (header.type.kind != LR_KIND_FLOAT || header.type.big_endian || !lr_number_type_is_valid(&header.type)) {
            return lr_error(reader->log, LR_BAD_INPUT,
                            "%s: its numbers are not float32 or float64, little endian: save it with astype('<f4')",
                            reader->path);
        }
        if (header.fortran_order) {
            return lr_error(reader->log, LR_BAD_INPUT, "%s: is in Fortran order: save it with numpy.ascontiguousarray",
                            reader->path);
        }
        LR_TRY(header.count == reader->scanner->num_crystals ? LR_OK : wrong_count(reader, header.count));

        for (int k = 0; k < reader->scanner->num_crystals; k++) {
            double value;
            if (fread(raw, 1, (size_t)header.type.bytes, reader->file) != (size_t)header.type.bytes)
                return lr_file_truncated(reader->file, reader->path, reader->log);
            lr_numbers_convert(&header.type, raw, 1, &value);
            LR_TRY(keep(reader, value));
        }
        return LR_OK;
    }

    /* Text: words between blanks and commas; '#' begins a comment. */
    char word[MAX_WORD];
    size_t length = 0;
    int character;
    reader->line = 1;
    do {
        character = fgetc(reader->file);
        if (character == '#')
            while (character != '\n' && character != EOF) character = fgetc(reader->file);
        const bool ends = character == EOF || strchr(" \t\r\n,", character) != NULL;
        if (!ends) word[length++] = (char)character;
        if (length > 0 && (ends || length == sizeof(word) - 1)) {
            word[length] = '\0';
            length = 0;
            char *end = NULL;
            const double value = strtod(word, &end);
            if (end == word || *end != '\0') {
                return lr_error(reader->log, LR_BAD_INPUT,
                                "%s:%d: '%s' is not a number: one per crystal is needed (.npy, text or .petsird), and "
                                "headings begin with #",
                                reader->path, reader->line, word);
            }
            LR_TRY(keep(reader, value));
        }
        reader->line += character == '\n';
    } while (character != EOF);
    LR_TRY(lr_file_check_read(reader->file, reader->path, reader->log));
    return reader->count == reader->scanner->num_crystals ? LR_OK : wrong_count(reader, reader->count);
}

lr_status lr_crystal_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    if (lr_events_head_format(&head) == LR_EVENTS_PETSIRD) return lr_petsird_values_read(path, scanner, values, log);
    struct reader reader = {.path = path, .log = log, .scanner = scanner, .values = values};
    const int64_t most = (64 << 20) + 4 * (int64_t)MAX_WORD * scanner->num_crystals;
    reader.file = lr_file_open_text(path, "", most, log);
    if (reader.file == NULL) return LR_BAD_INPUT;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = read_file(&reader, lr_head_begins(&head, "\x93NUMPY", 6));
    lr_c_locale_leave(locale);
    fclose(reader.file);
    return status;
}

/* --- measured profiles across a line of response, as YAML (docs/formats/histo-images.md) --- */

enum { MOST_PROFILES = 4096, MOST_VALUES = 65536 };

/* Returns the number of items in a list; 0, logged, on failure. */
static int count_items(const struct lr_yaml *yaml, struct fy_node *list, struct fy_node *key, int most)
{
    const int count = list && fy_node_is_sequence(list) ? fy_node_sequence_item_count(list) : 0;
    if (count < 1 || count > most) {
        lr_yaml_error(yaml, list ? list : key, "a list of 1 to %d numbers is needed here", most);
        return 0;
    }
    return count;
}

static lr_status read_list(const struct lr_yaml *yaml, struct fy_node *list, struct fy_node *key, double *values)
{
    const int count = fy_node_sequence_item_count(list);
    void *iterator = NULL;
    for (int k = 0; k < count; k++) {
        const struct lr_yaml_field field = {"a number", NULL, LR_YAML_NUMBER, true, &values[k], NULL};
        LR_TRY(lr_yaml_read_value(yaml, &field, fy_node_sequence_iterate(list, &iterator), key));
    }
    return LR_OK;
}

static lr_status read_profiles(const struct lr_yaml *yaml, lr_radial_profiles *profiles)
{
    struct fy_node *distances = NULL, *distances_key = NULL, *rows = NULL, *rows_key = NULL;
    const struct lr_yaml_field fields[] = {
        {"distance_mm", NULL, LR_YAML_NODE, true, &distances, &distances_key},
        {"first_offset_mm", NULL, LR_YAML_NUMBER, true, &profiles->first_offset_mm, NULL},
        {"offset_step_mm", NULL, LR_YAML_POSITIVE, true, &profiles->offset_step_mm, NULL},
        {"profiles", NULL, LR_YAML_NODE, true, &rows, &rows_key},
    };
    const struct lr_yaml_mapping mapping = {fy_document_root(yaml->document), NULL, "measured profiles"};
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, sizeof(fields) / sizeof(fields[0])));

    const lr_log *log = yaml->log;
    const int num = count_items(yaml, distances, distances_key, MOST_PROFILES);
    LR_TRY(num > 0 ? LR_OK : LR_BAD_INPUT);
    profiles->num_distances = num;
    profiles->distance_mm = lr_alloc(num, sizeof(double), "measured profiles", log);
    LR_TRY(profiles->distance_mm != NULL ? LR_OK : LR_FAILED);
    LR_TRY(read_list(yaml, distances, distances_key, profiles->distance_mm));
    if (rows == NULL || !fy_node_is_sequence(rows) || fy_node_sequence_item_count(rows) != num)
        return lr_yaml_error(yaml, rows_key, "'profiles' must list one profile for each of the %d distances", num);
    void *iterator = NULL;
    for (int d = 0; d < num; d++) {
        struct fy_node *row = fy_node_sequence_iterate(rows, &iterator);
        const int count = count_items(yaml, row, rows_key, MOST_VALUES);
        LR_TRY(count > 0 ? LR_OK : LR_BAD_INPUT);
        if (d == 0) {
            profiles->num_offsets = count;
            profiles->values = lr_alloc((int64_t)num * count, sizeof(double), "measured profiles", log);
        }
        LR_TRY(profiles->values != NULL ? LR_OK : LR_FAILED);
        if (count != profiles->num_offsets) {
            return lr_yaml_error(yaml, row, "this profile has %d values and the first one %d", count,
                                 profiles->num_offsets);
        }
        LR_TRY(read_list(yaml, row, rows_key, profiles->values + (int64_t)d * count));
    }
    return LR_OK;
}

lr_status lr_radial_profiles_read(const char *path, lr_radial_profiles *profiles, const lr_log *log)
{
    *profiles = (lr_radial_profiles){0};
    struct lr_yaml *yaml = lr_yaml_read(path, log);
    const lr_status status = yaml != NULL ? read_profiles(yaml, profiles) : LR_BAD_INPUT;
    lr_yaml_destroy(yaml);
    if (status != LR_OK) lr_radial_profiles_finish(profiles);
    return status;
}
