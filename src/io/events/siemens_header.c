/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/siemens_header.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/interfile.h"
#include "io/files/regular_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 4096 };

/* InterfileHeaderSiemens.cxx of STIR 6.2 and headers of a Biograph mMR. The scanner's lengths are those of the
 * scanner that is named. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "name of data file|data format|data offset in bytes|lm event and tag words format (bits)|"
     "axial compression|maximum ring difference|number of projections|number of views|"
     "number of rings|number of tof time bins|total listmode word counts",
     NULL, NULL},
    {LR_KEY_REFUSED, "type of data", "PET", "only data of PET can be read"},
    {LR_KEY_WARNED, "sms-mi header name space", "PETLINK bin address", "its words are taken for addresses of bins"},
    {LR_KEY_WARNED, "pet data type", "Emission", "its events are taken for coincidences of emitted photons"},
    {LR_KEY_WARNED, "pet scanner type", "cylindrical", "its crystals are taken to stand in full rings"},
    {LR_KEY_WARNED, "patient orientation", "hfs",
     "the axes of images are those of a patient who lies head first on the back: turn the image if "
     "they are to be the patient's own"},
    {LR_KEY_WARNED, "start horizontal bed position (mm)|bed zero offset (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "start vertical bed position (mm)", "0",
     "images are where the scanner is: move them along y by it"},
    {LR_KEY_WARNED, "gantry tilt angle (degrees)", "0", "images stand as the scanner does"},
    {LR_KEY_WARNED, "septa state", "none|retracted|out",
     "septa between rings are not computed: efficiencies have to hold what they stop"},
    {LR_KEY_IDLE,
     "version of keys|sms-mi version number|study date*|study time*|patient name|patient id|"
     "process status|data description|data set*|scan data type description|isotope name|"
     "isotope gamma halflife (sec)|isotope branching factor|number of radionuclides|"
     "radionuclide name|radionuclide halflife (sec)|radionuclide branching factor|"
     "image relative start time (sec)|image duration (sec)|number of energy windows|"
     "energy window lower level*|energy window upper level*|energy window pair|comment|"
     "originating system|radiopharmaceutical|relative time of tracer injection (sec)|"
     "tracer activity at time of injection (bq)|injected volume (ml)|tracer injection date*|"
     "tracer injection time*|horizontal bed translation|end horizontal bed position (mm)|"
     "coincidence window width (ns)|transaxial fov diameter (cm)|distance between rings (cm)|"
     "gantry crystal radius (cm)|bin size (cm)|tof mashing factor|number of segments|"
     "segment table|number of buckets|bucket singles rate|total number of singles blocks|"
     "singles polling method|singles polling interval (sec)|singles scale factor|"
     "timing tagwords interval (msec)|time sync|preset type|preset value|preset unit|"
     "decay correction*|total uncorrected singles rate|total prompts*|total randoms|"
     "total net trues|image duration from timing tags (msec)|gim loss fraction|pdr loss fraction|"
     "detector block singles|listmode header file|listmode data file|compressor version",
     NULL, NULL},
};
const struct lr_known_keys lr_siemens_keys = {
    .format = "Siemens' headers of list mode", .rows = known_keys, .count = sizeof(known_keys) / sizeof(known_keys[0])};

static const struct lr_siemens_header empty = {NULL, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/* --- one file --- */

/* A number that may not be negative. */
static lr_status take_number(const struct lr_interfile *file, const char *key, int64_t *number)
{
    LR_TRY(lr_interfile_integer(file, key, 0, number));
    const char *value = lr_interfile_text(file, key, 0);
    if (value != NULL && *number < 0) {
        return lr_error(file->log, LR_BAD_INPUT, "%s:%d: '%s' must be a whole number, found '%.64s'", file->path,
                        lr_interfile_line(file, key, 0), key, value);
    }
    return LR_OK;
}

static lr_status take_numbers(const struct lr_interfile *file, struct lr_siemens_header *header)
{
    const struct {
        const char *key;
        int64_t *value;
    } known[] = {
        {"lm event and tag words format (bits)", &header->word_bits},
        {"axial compression", &header->axial_compression},
        {"maximum ring difference", &header->max_ring_difference},
        {"number of projections", &header->bins},
        {"number of views", &header->views},
        {"number of rings", &header->rings},
        {"number of tof time bins", &header->tof_bins},
        {"data offset in bytes", &header->offset_bytes},
        {"total listmode word counts", &header->num_words},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        LR_TRY(take_number(file, known[k].key, known[k].value));
    return LR_OK;
}

static lr_status take_header(const struct lr_interfile *file, struct lr_siemens_header *header)
{
    *header = empty;
    if (!file->text.has_start) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: does not begin with '!INTERFILE', so it is no Siemens header",
                        file->path);
    }
    const char *format = lr_interfile_text(file, "data format", 0);
    if (format != NULL && strcmp(format, "CoincidenceList") != 0) {
        return lr_error(file->log, LR_BAD_INPUT, "%s:%d: the header describes '%.64s', not list mode (CoincidenceList)",
                        file->path, lr_interfile_line(file, "data format", 0), format);
    }
    return take_numbers(file, header);
}

static lr_status read_named(const char *path, struct lr_siemens_header *header, const lr_log *log)
{
    struct lr_interfile file;
    LR_TRY(lr_interfile_read(&file, path, log));
    lr_status status = take_header(&file, header);
    if (status == LR_OK) status = lr_keyed_text_judge(&file.text, &lr_siemens_keys);
    if (status == LR_OK) {
        header->path = file.path;
        file.path = NULL;
    }
    lr_interfile_finish(&file);
    return status;
}

/* --- beside the events --- */

/* A search through the folder of the events. */
struct search {
    const char *events, *name; /* path, and its last part */
    char *found;
    const lr_log *log;
};

/* Whether that file is a header and names the events. Others are passed over without a word. */
static bool belongs(const struct search *search, const char *path)
{
    struct lr_siemens_header header;
    struct lr_interfile file;
    if (lr_interfile_read(&file, path, NULL) != LR_OK) return false;
    const char *name = lr_interfile_text(&file, "name of data file", 0);
    const bool found = name != NULL && strcmp(name, search->name) == 0 && take_header(&file, &header) == LR_OK;
    lr_interfile_finish(&file);
    return found;
}

static bool is_header_name(const char *name)
{
    const char *part = strstr(name, ".hdr");
    return part != NULL && (part[4] == '\0' || part[4] == '.');
}

/* Takes a file of the folder when it is the one; a second one is an error. */
static lr_status consider(struct search *search, const char *name)
{
    if (!is_header_name(name)) return LR_OK;
    char *path = lr_path_beside(search->events, name, search->log);
    if (path == NULL) return LR_FAILED;
    if (!belongs(search, path)) {
        free(path);
        return LR_OK;
    }
    if (search->found != NULL) {
        const lr_status status = lr_error(search->log, LR_BAD_INPUT,
                                          "%s: more than one header names it, %s and %s: name the "
                                          "one to use",
                                          search->events, search->found, path);
        free(path);
        return status;
    }
    search->found = path;
    return LR_OK;
}

static lr_status search_folder(struct search *search)
{
    char *path = lr_path_beside(search->events, "./", search->log);
    DIR *folder = path != NULL ? opendir(path) : NULL;
    lr_status status = path != NULL ? LR_OK : LR_FAILED;
    free(path);
    if (folder == NULL) return status; /* a folder that may not be listed has no header that could be found */
    const struct dirent *item;
    while (status == LR_OK && (item = readdir(folder)) != NULL) status = consider(search, item->d_name);
    closedir(folder);
    return status;
}

/* EVENTS.hdr goes before all others. */
static lr_status search_beside(struct search *search)
{
    char own[MAX_NAME];
    snprintf(own, sizeof(own), "%s.hdr", search->name);
    search->found = lr_path_beside(search->events, own, search->log);
    if (search->found == NULL) return LR_FAILED;
    FILE *file = lr_file_open(search->found, "", NULL);
    if (file != NULL) {
        fclose(file);
        return LR_OK;
    }
    free(search->found);
    search->found = NULL;
    return search_folder(search);
}

lr_status lr_siemens_header_read(const char *path, const char *events, struct lr_siemens_header *header,
                                 const lr_log *log)
{
    *header = empty;
    if (path != NULL) return read_named(path, header, log);
    struct search search = {.events = events, .name = lr_path_name(events), .log = log};
    lr_status status = search_beside(&search);
    if (status == LR_OK && search.found != NULL) status = read_named(search.found, header, log);
    free(search.found);
    return status;
}

void lr_siemens_header_finish(struct lr_siemens_header *header)
{
    free(header->path);
    *header = (struct lr_siemens_header){0};
}
