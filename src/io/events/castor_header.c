/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/castor_header.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/c_locale.h"
#include "io/files/keyed_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* vDataFile.cc and iDataFilePET.cc of CASToR 3.1.1. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "data filename|number of events|data mode|scanner name|duration (s)|"
     "attenuation correction flag|normalization correction flag|scatter correction flag|"
     "random correction flag|coincidence kind flag|tof information flag|tof resolution (ps)|"
     "list tof measurement range (ps)|list tof quantization bin size (ps)|"
     "histo tof number of bins|histo tof bin size (ps)",
     NULL, NULL},
    {LR_KEY_REFUSED, "data type", "PET|0", "only PET can be read"},
    {LR_KEY_REFUSED, "maximum number of lines per event", "1", "only events of one pair of crystals can be read"},
    {LR_KEY_REFUSED, "poi capability|poi correction flag|poi *", "0|-1|none|no",
     "events with points of interaction or emission cannot be read"},
    {LR_KEY_REFUSED, "emission point flag", "0", "events with points of interaction or emission cannot be read"},
    {LR_KEY_WARNED, "gate duration (s)", "0", "events of all gates are taken together"},
    {LR_KEY_WARNED, "calibration factor", "1", "images are counts, and are not multiplied by it"},
    {LR_KEY_WARNED, "horizontal bed relative position (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "maximum axial difference mm", "-1|0",
     "pairs of crystals farther apart along the axis count as measured without counts: give the "
     "scanner's max_ring_difference"},
    {LR_KEY_IDLE, "start time (s)|isotope", NULL, NULL},
};
const struct lr_known_keys lr_castor_header_keys = {.format = "CASToR's data headers",
                                                    .rows = known_keys,
                                                    .count = sizeof(known_keys) / sizeof(known_keys[0]),
                                                    .finds_parts = true};

bool lr_castor_header_recognises(const struct lr_file_head *head)
{
    return strlen(head->bytes) == head->count && strstr(head->bytes, "Data filename") != NULL;
}

/* --- values --- */

static const char *value_of(const struct lr_keyed_text *text, const char *key)
{
    const struct lr_keyed_line *line = lr_keyed_text_find(text, key);
    return line != NULL ? line->value : "";
}

static lr_status number(const struct lr_keyed_text *text, const char *key, double *value)
{
    const struct lr_keyed_number any = {.key = key, .least = -1e300, .most = 1e300};
    return lr_keyed_text_number(text, &any, 0, value);
}

static lr_status whole(const struct lr_keyed_text *text, struct lr_keyed_number number, int64_t *value)
{
    double read = (double)*value;
    number.whole = true;
    LR_TRY(lr_keyed_text_number(text, &number, 0, &read));
    *value = (int64_t)read;
    return LR_OK;
}

static lr_status flag(const struct lr_keyed_text *text, const char *key, bool *value)
{
    int64_t read = 0;
    LR_TRY(whole(text, (struct lr_keyed_number){.key = key, .most = 1}, &read));
    *value = read != 0;
    return LR_OK;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcasecmp(word, *words) == 0) return true;
    return false;
}

static lr_status read_mode(const struct lr_keyed_text *text, struct lr_castor_header *header)
{
    static const char *const lists[] = {"list-mode", "listmode", "list", "0", NULL};
    static const char *const histograms[] = {"histogram", "histo", "1", NULL};
    const struct lr_keyed_line *line = lr_keyed_text_find(text, "data mode");
    if (line == NULL) return lr_keyed_text_error(text, NULL, "has no 'Data mode'");
    const bool is_list = is_one_of(line->value, lists);
    if (!is_list && !is_one_of(line->value, histograms)) {
        return lr_keyed_text_error(text, line, "data mode '%.40s': only list mode and histograms can be read",
                                   line->value);
    }
    header->mode = is_list ? LR_CASTOR_LIST : LR_CASTOR_HISTOGRAM;
    return LR_OK;
}

static lr_status read_flags(const struct lr_keyed_text *text, struct lr_castor_header *header)
{
    LR_TRY(flag(text, "attenuation correction flag", &header->has_attenuation));
    LR_TRY(flag(text, "normalization correction flag", &header->has_normalization));
    LR_TRY(flag(text, "scatter correction flag", &header->has_scatter));
    LR_TRY(flag(text, "random correction flag", &header->has_randoms));
    LR_TRY(flag(text, "tof information flag", &header->has_tof));
    return flag(text, "coincidence kind flag", &header->has_kind);
}

static lr_status read_tof(const struct lr_keyed_text *text, struct lr_castor_header *header)
{
    const struct lr_keyed_number range = {
        .key = "histo tof number of bins", .least = 1, .most = LR_CASTOR_MAX_TOF_BINS};
    int64_t bins = 1;
    LR_TRY(number(text, "tof resolution (ps)", &header->tof_resolution_ps));
    LR_TRY(number(text, "list tof measurement range (ps)", &header->tof_range_ps));
    LR_TRY(number(text, "list tof quantization bin size (ps)", &header->tof_quantisation_ps));
    LR_TRY(number(text, "histo tof bin size (ps)", &header->tof_bin_ps));
    LR_TRY(whole(text, range, &bins));
    header->num_tof_bins = (int)bins;
    if (header->mode == LR_CASTOR_HISTOGRAM && bins > 1 && !(header->tof_bin_ps > 0)) {
        return lr_keyed_text_error(text, NULL, "has %d time-of-flight bins and no 'Histo TOF bin size (ps)'",
                                   header->num_tof_bins);
    }
    return LR_OK;
}

static lr_status find_data(const struct lr_keyed_text *text, struct lr_castor_header *header)
{
    const char *name = value_of(text, "data filename");
    if (name[0] == '\0') return lr_keyed_text_error(text, NULL, "names no data file ('Data filename')");
    header->data_path = lr_path_beside(text->path, name, text->log);
    return header->data_path != NULL ? LR_OK : LR_FAILED;
}

static lr_status read_header(const struct lr_keyed_text *text, struct lr_castor_header *header)
{
    const struct lr_keyed_number events = {.key = "number of events", .most = 0x1p52, .required = true};
    if (lr_keyed_text_find(text, "data filename") == NULL)
        return lr_keyed_text_error(text, NULL, "is no CASToR data header, a text with 'Data filename'");
    LR_TRY(lr_keyed_text_judge(text, &lr_castor_header_keys));
    snprintf(header->scanner, sizeof(header->scanner), "%.63s", value_of(text, "scanner name"));
    lr_clean_text(header->scanner);
    LR_TRY(whole(text, events, &header->num_events));
    LR_TRY(number(text, "duration (s)", &header->duration_s));
    LR_TRY(read_mode(text, header));
    LR_TRY(read_flags(text, header));
    LR_TRY(read_tof(text, header));
    return find_data(text, header);
}

lr_status lr_castor_header_read(const char *path, struct lr_castor_header *header, const lr_log *log)
{
    static const struct lr_keyed_dialect dialect = {.separator = ":", .comment = '#', .what = "a CASToR data header"};
    struct lr_keyed_text text;
    const struct lr_c_locale locale = lr_c_locale_enter();
    *header = (struct lr_castor_header){0};
    lr_status status = lr_keyed_text_read(&text, path, &dialect, log);
    if (status == LR_OK) {
        status = read_header(&text, header);
        lr_keyed_text_finish(&text);
    }
    lr_c_locale_leave(locale);
    return status;
}

void lr_castor_header_finish(struct lr_castor_header *header)
{
    free(header->data_path);
    *header = (struct lr_castor_header){0};
}

int64_t lr_castor_event_bytes(const struct lr_castor_header *header)
{
    const int terms = header->has_attenuation + header->has_normalization + header->has_randoms;
    const int64_t ids_and_time = 3 * 4;
    if (header->mode == LR_CASTOR_LIST)
        return ids_and_time + 4 * (terms + header->has_scatter + header->has_tof) + (header->has_kind ? 1 : 0);
    return ids_and_time + 4 * terms + (int64_t)4 * header->num_tof_bins * (header->has_scatter ? 2 : 1);
}
