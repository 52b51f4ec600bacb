/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every key of the tables in src/io is put into a good file: one that is read makes something else, or is compared with
 * what is there; one that is refused or warned of is named with its file; all others, and the usual values of those,
 * change nothing, in silence. Headers and records that are no text, and HDF5, are made from text with a line for each
 * field. docs/formats/keys.md has the same tables: "test_io_header_keys print" prints them. */
#include "io/events/event_stream.h"
#include "io/events/petsird.h"
#include "io/images/formats.h"
#include "io/projdata_files.h"
#include "io/scanners/scanner_formats.h"
#include "io/text_cases.h"

#include <ctype.h>
#include <hdf5.h>
#include <lr/io.h>
#include <strings.h>

enum { ROOM = 16384 };

static struct {
    struct test_folder folder;
    lr_lors *even, *octagon;
    char projection_data[8192];
    lr_log log;
    char error[2048], warnings[ROOM];
} fixture;

/* Reads a file and returns the result as text; NULL: the file is refused. */
typedef char *make_function(const char *path);

static const char words_header[] = "!INTERFILE:=\nname of data file:=words.l\nnumber of rings:=4\n"
                                   "%number of projections:=20\n%number of views:=16\n";

/* Two formats whose readers have no table of their own, because no key in them is refused or warned of. */
static const struct lr_known_key map_columns[] = {
    {LR_KEY_READ, "ring|det|layer|x|y|z|# depth_mm|# face_mm", NULL, NULL}, {LR_KEY_IDLE, "# comment", NULL, NULL}};
static const struct lr_known_keys map_keys = {.format = "STIR's crystal maps", .rows = map_columns, .count = 2};
static const struct lr_known_key corrections_sets[] = {
    {LR_KEY_READ,
     "correction_lists/sens|correction_lists/atten|correction_lists/contam|all_xtals/xtal_ids|all_xtals/sens|"
     "all_xtals/atten",
     NULL, NULL},
    {LR_KEY_IDLE, "all_xtals/contam|header/listfile", NULL, NULL}};
static const struct lr_known_keys corrections_keys = {
    .format = "GE's corrections.h5", .rows = corrections_sets, .count = 2};

/* --- binary files --- */

/* Writes a binary file from a text with a line "field = value" for each field. */
typedef void write_function(const char *path, const char *text);

/* Reads the next line; returns false after the last line. */
static bool next_field(const char **text, char field[128], char value[256])
{
    field[0] = value[0] = '\0';
    if (**text == '\0') return false;
    const int length = (int)strcspn(*text, "\n"), name = (int)strcspn(*text, "=");
    assert_true(name < length);
    snprintf(field, 128, "%.*s", name - 1, *text);
    snprintf(value, 256, "%.*s", length - name - 2, *text + name + 2);
    *text += length + ((*text)[length] == '\n');
    return true;
}

/* Places and types of the header's fields, from nifti1.h: 'c' text, 'b' bytes, 'h' and 'i' whole numbers of 2 and 4
 * bytes, 'f' single precision. */
static void write_nifti(const char *path, const char *text)
{
    static const struct {
        const char *name;
        int at;
        char type;
    } fields[] = {
        {"sizeof_hdr", 0, 'i'},       {"data_type", 4, 'c'},     {"db_name", 14, 'c'},     {"extents", 32, 'i'},
        {"session_error", 36, 'h'},   {"regular", 38, 'c'},      {"dim_info", 39, 'b'},    {"dim", 40, 'h'},
        {"intent_p1", 56, 'f'},       {"intent_p2", 60, 'f'},    {"intent_p3", 64, 'f'},   {"intent_code", 68, 'h'},
        {"datatype", 70, 'h'},        {"bitpix", 72, 'h'},       {"slice_start", 74, 'h'}, {"pixdim", 76, 'f'},
        {"vox_offset", 108, 'f'},     {"scl_slope", 112, 'f'},   {"scl_inter", 116, 'f'},  {"slice_end", 120, 'h'},
        {"slice_code", 122, 'b'},     {"xyzt_units", 123, 'b'},  {"cal_max", 124, 'f'},    {"cal_min", 128, 'f'},
        {"slice_duration", 132, 'f'}, {"toffset", 136, 'f'},     {"glmax", 140, 'i'},      {"glmin", 144, 'i'},
        {"descrip", 148, 'c'},        {"aux_file", 228, 'c'},    {"qform_code", 252, 'h'}, {"sform_code", 254, 'h'},
        {"quatern_b", 256, 'f'},      {"quatern_c", 260, 'f'},   {"quatern_d", 264, 'f'},  {"qoffset_x", 268, 'f'},
        {"qoffset_y", 272, 'f'},      {"qoffset_z", 276, 'f'},   {"srow_x", 280, 'f'},     {"srow_y", 296, 'f'},
        {"srow_z", 312, 'f'},         {"intent_name", 328, 'c'}, {"magic", 344, 'c'},      {"extension", 348, 'b'}};
    enum { NUM_FIELDS = sizeof(fields) / sizeof(fields[0]), BEGIN = 352, VOXELS = 120 };
    static unsigned char bytes[BEGIN + 4 * VOXELS];
    char field[128], value[256];
    memset(bytes, 0, sizeof(bytes));
    for (int k = 0; k < VOXELS; k++) {
        const int16_t voxel = (int16_t)(k % 2 == 0 ? k : -k);
        memcpy(bytes + BEGIN + 2 * k, &voxel, 2);
    }
    while (next_field(&text, field, value)) {
        int k = 0;
        while (k < NUM_FIELDS && strcmp(fields[k].name, field) != 0) k++;
        if (k == NUM_FIELDS) fail_msg("NIfTI-1 has no field '%s'", field);
        unsigned char *at = bytes + fields[k].at;
        if (fields[k].type == 'c') memcpy(at, value, strlen(value));
        for (char *rest = value; fields[k].type != 'c' && *rest != '\0';) {
            const double number = strtod(rest, &rest);
            const float single = (float)number;
            const int32_t whole = fields[k].type == 'f' ? 0 : (int32_t)number;
            const size_t length = fields[k].type == 'b' ? 1 : fields[k].type == 'h' ? 2 : 4;
            memcpy(at, fields[k].type == 'f' ? (const void *)&single : (const void *)&whole, length);
            at += length;
        }
    }
    bytes_write(path, bytes, sizeof(bytes));
}

/* Writes a time mark at `time` ms, the event, and a mark at 1 s. */
static void write_safir(const char *path, const char *text)
{
    static const struct {
        const char *name;
        unsigned at, bits;
    } fields[] = {{"ringA", 0, 8},   {"ringB", 8, 8},     {"detA", 16, 16},     {"detB", 32, 16}, {"layerA", 48, 4},
                  {"layerB", 52, 4}, {"reserved", 56, 6}, {"isDelayed", 62, 1}, {"type", 63, 1}};
    unsigned char bytes[32 + 3 * 8] = {0};
    uint64_t records[3] = {UINT64_C(1) << 63, 0, UINT64_C(1) << 63 | 1000};
    char field[128], value[256];
    while (next_field(&text, field, value)) {
        const uint64_t number = strtoull(value, NULL, 10);
        if (strcmp(field, "signature") == 0) memcpy(bytes, value, strlen(value));
        if (strcmp(field, "signature's rest") == 0) memcpy(bytes + 24, value, strlen(value));
        if (strcmp(field, "time") == 0) records[0] |= number;
        for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
            if (strcmp(field, fields[k].name) == 0)
                records[1] |= (number & ((UINT64_C(1) << fields[k].bits) - 1)) << fields[k].at;
    }
    memcpy(bytes + 32, records, sizeof(records));
    bytes_write(path, bytes, sizeof(bytes));
}

/* The field's first word has the highest bits of a word, its value the other bits. Two words hold the position of
   the bed. */
static void write_words(const char *path, const char *text)
{
    uint32_t list[16] = {0xc4000000, 0x80000000};
    size_t count = 2;
    char field[128], value[256];
    while (next_field(&text, field, value)) {
        uint32_t word = strncmp(field, "110", 3) == 0 ? 0x04000000 : 0, bit = UINT32_C(1) << 31;
        for (const char *at = field; *at == '0' || *at == '1'; at++, bit >>= 1) word |= *at == '1' ? bit : 0;
        list[count++] = word | (uint32_t)strtoul(value, NULL, 10);
    }
    bytes_write(path, list, count * sizeof(list[0]));
}

/* Writes the octagon's crystals; the crystal of ring 1, place 1 gets the fields of the text instead. */
static void write_map(const char *path, const char *text)
{
    static const char *const names[] = {"ring", "det", "layer", "x", "y", "z"};
    double own[6] = {0};
    char field[128], value[256];
    FILE *file = non_null(fopen(path, "w"));
    lr_module_crystal_centre(&fixture.octagon->scanner->modules[0], 1, 1, &own[3]);
    while (next_field(&text, field, value)) {
        if (field[0] == '#') fprintf(file, "%s: %s\n", field, value);
        for (int k = 0; k < 6; k++) own[k] = strcmp(field, names[k]) == 0 ? strtod(value, NULL) : own[k];
    }
    for (int k = 0; k < fixture.octagon->scanner->num_crystals; k++) {
        double at[3];
        lr_scanner_crystal_centre(fixture.octagon->scanner, k, at);
        if (k != 4) fprintf(file, "%d %d 0 %.4f %.4f %.4f\n", k % 12 / 3, k / 12 * 3 + k % 3, at[0], at[1], at[2]);
    }
    fprintf(file, "%g %g %g %.4f %.4f %.4f\n", own[0], own[1], own[2], own[3], own[4], own[5]);
    assert_int_equal(fclose(file), 0);
}

/* Each field is a dataset: tables for events and pairs, lists for corrections, and in the header numbers with or
 * without an axis. */
static void write_hdf5(const char *path, const char *text)
{
    char field[128], value[256];
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    assert_true(file >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0);
    while (next_field(&text, field, value)) {
        double numbers[16];
        hsize_t count = 0;
        for (char *rest = value; *rest != '\0' && count < 16;) numbers[count++] = strtod(rest, &rest);
        const hsize_t columns = strstr(field, "TofCoinc") != NULL ? 5 : strstr(field, "xtal_ids") != NULL ? 4 : 0;
        const hsize_t extent[2] = {columns > 0 ? count / columns : count, columns};
        const bool is_scalar = strstr(field, "Acq") != NULL;
        const hid_t space = is_scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(columns > 0 ? 2 : 1, extent, NULL);
        const hid_t type = columns > 0 ? H5T_STD_I16LE : H5T_IEEE_F32LE;
        const hid_t set = H5Dcreate2(file, field, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0);
    }
    assert_true(H5Pclose(links) >= 0 && H5Fclose(file) >= 0);
}

/* --- results as text --- */

static char *print_scanner(const char *path)
{
    lr_scanner *scanner = lr_scanner_read(path, &fixture.log);
    if (scanner == NULL) return NULL;
    const char *yaml = file_in(&fixture.folder, "made.yaml");
    assert_int_equal(lr_scanner_write(yaml, scanner, NULL), LR_OK);
    lr_scanner_destroy(scanner);
    return (char *)bytes_read(yaml, NULL);
}

/* Events of a file: either the named file, or the events beside which it lies. */
static char *print_events(const char *path)
{
    const struct test_folder *folder = &fixture.folder;
    lr_events_source source = {.path = path, .scanner = fixture.octagon->scanner, .log = &fixture.log};
    if (strstr(path, ".Cdh") != NULL) source.scanner = fixture.even->scanner;
    if (strstr(path, ".safir") != NULL) source.companion = file_in(folder, "octagon.map");
    if (strstr(path, ".map") != NULL) source.companion = path;
    if (strstr(path, ".map") != NULL) source.path = file_in(folder, "octagon.safir");
    if (strstr(path, ".hdr") != NULL || strstr(path, ".l") != NULL) source.format = LR_EVENTS_SIEMENS;
    if (strstr(path, ".hdr") != NULL) source.path = file_in(folder, "x.l");
    if (strstr(path, ".l") != NULL) source.companion = file_in(folder, "words.hdr");
    lr_event_list *list = lr_event_list_read(&source);
    if (list == NULL) return NULL;
    char *text = kept(ROOM, 1);
    int used = snprintf(text, ROOM, "%s %g %g %g %d %g;", list->info.scanner, list->info.duration_s,
                        list->info.tof_resolution_ps, list->info.tof_range_mm, list->info.num_tof_bins,
                        lr_events_info_tof_bin_mm(&list->info));
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        used += snprintf(text + used, ROOM - (size_t)used, " %d %d %g %g %d", (int)event->crystals[0],
                         (int)event->crystals[1], (double)event->tof_mm, (double)event->weight, event->is_delayed);
    }
    lr_event_list_destroy(list);
    return text;
}

static char *print_corrections(const char *path)
{
    lr_event_corrections *found = lr_event_corrections_read(path, fixture.octagon, &fixture.log);
    if (found == NULL) return NULL;
    char *text = kept(ROOM, 1);
    int used = 0;
    for (int64_t k = 0; k < found->count; k++)
        used += snprintf(text + used, 64, " %g %g", (double)found->factors[k], (double)found->additive[k]);
    double sum = 0, moment = 0;
    for (int64_t lor = 0; lor < found->lors->count; lor++) {
        sum += (double)found->lors->values[lor];
        moment += (double)found->lors->values[lor] * (double)lor;
    }
    snprintf(text + used, 64, "; %g %g", sum, moment);
    lr_event_corrections_destroy(found);
    return text;
}

static char *print_data(const char *path)
{
    lr_lor_data *data = lr_lor_data_read(path, fixture.even, &fixture.log);
    if (data == NULL) return NULL;
    double sum = 0, moment = 0;
    for (int64_t k = 0; k < data->count; k++) {
        const int64_t lor = data->index != NULL ? data->index[k] : k;
        sum += data->values[k];
        moment += data->values[k] * (double)lor;
    }
    lr_lor_data_destroy(data);
    char *text = kept(ROOM, 1);
    snprintf(text, ROOM, "%.9g %.9g", sum, moment);
    return text;
}

static char *print_image(const char *path)
{
    lr_image *image = lr_image_read(path, &fixture.log);
    if (image == NULL) return NULL;
    char *text = kept(ROOM, 1);
    int used = 0;
    for (int k = 0; k < 3; k++) {
        used += snprintf(text + used, 128, "%d %g %g;", image->grid.size[k], image->grid.voxel_mm[k],
                         image->grid.origin_mm[k]);
    }
    for (int64_t k = 0; k < lr_grid_num_voxels(&image->grid) && used < ROOM - 32; k++)
        used += snprintf(text + used, 32, " %g", (double)image->values[k]);
    lr_image_destroy(image);
    return text;
}

/* --- formats --- */

#define FORMAT(table, file, mark, reader, writer)                                                                      \
    {                                                                                                                  \
        .known = &(table), .name = (file), .separator = (mark), .make = (reader), .write = (writer)                    \
    }
static struct format {
    const struct lr_known_keys *known;
    const char *name, *separator;
    make_function *make;
    write_function *write; /* NULL: the text is the file */
    const char *good;
    struct trial {
        const char *line;
        enum lr_key_outcome outcome;
    } trials[64];
    int num_trials;
} formats[] = {
    FORMAT(lr_geom_keys, "x.geom", ":", print_scanner, NULL),
    FORMAT(lr_hscan_keys, "x.hscan", ":", print_scanner, NULL),
    FORMAT(lr_castor_header_keys, "x.Cdh", ":", print_events, NULL),
    FORMAT(lr_castor_header_keys, "y.Cdh", ":", print_events, NULL),
    FORMAT(lr_stir_scanner_keys, "x.hs", ":=", print_scanner, NULL),
    FORMAT(lr_stir_scanner_keys, "y.hs", ":=", print_scanner, NULL),
    FORMAT(lr_stir_data_keys, "data.hs", ":=", print_data, NULL),
    FORMAT(lr_interfile_image_keys, "x.hv", ":=", print_image, NULL),
    FORMAT(lr_interfile_image_keys, "x.hdr", ":=", print_image, NULL),
    FORMAT(lr_interfile_image_keys, "y.hv", ":=", print_image, NULL),
    FORMAT(lr_siemens_keys, "siemens.hdr", ":=", print_events, NULL),
    FORMAT(lr_metaimage_keys, "x.mhd", "=", print_image, NULL),
    FORMAT(lr_nifti_keys, "x.nii", "=", print_image, write_nifti),
    FORMAT(lr_safir_fields, "x.safir", "=", print_events, write_safir),
    FORMAT(map_keys, "x.map", "=", print_events, write_map),
    FORMAT(map_keys, "x.txt", "=", print_scanner, write_map),
    FORMAT(lr_siemens_words, "words.l", "=", print_events, write_words),
    FORMAT(lr_ge_keys, "x.BLF", "=", print_events, write_hdf5),
    FORMAT(corrections_keys, "corrections.h5", "=", print_corrections, write_hdf5),
    FORMAT(lr_petsird_keys, NULL, NULL, NULL, NULL), /* test_events.py tests its keys */
};
enum { NUM_FORMATS = sizeof(formats) / sizeof(formats[0]), NUM_TEXTS = NUM_FORMATS - 1 };

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    if (level == LR_LOG_ERROR) {
        snprintf(fixture.error, sizeof(fixture.error), "%s", sentence);
    } else if (level == LR_LOG_WARNING) {
        const size_t used = strlen(fixture.warnings);
        snprintf(fixture.warnings + used, ROOM - used, "%s\n", sentence);
    }
}

static char *make(const struct format *format, const char *header)
{
    char path[128];
    fixture.error[0] = fixture.warnings[0] = '\0';
    folder_file(&fixture.folder, path, format->name);
    if (format->write != NULL)
        format->write(path, header);
    else
        text_write(path, header);
    char *made = format->make(path);
    assert_true((made == NULL) == (fixture.error[0] != '\0'));
    remove(path);
    return made;
}

/* Element n of a list separated by '|'; returns false after the last element. */
static bool element_of(const char *list, int n, char element[128])
{
    for (; list != NULL && n > 0; n--) {
        list = strchr(list, '|');
        list += list != NULL;
    }
    snprintf(element, 128, "%.*s", list != NULL ? (int)strcspn(list, "|") : 0, list != NULL ? list : "");
    return list != NULL;
}

static const char *last_line(const char *text)
{
    const char *end = strrchr(text, '\n');
    return end != NULL ? end + 1 : text;
}

/* The key of a line without '!' and '%'; the length excludes blanks after it. */
static const char *key_of(const struct format *format, const char *line, size_t *length)
{
    line += strspn(line, "!%");
    const char *end = strstr(line, format->separator);
    const size_t whole = strcspn(line, "\n");
    *length = end != NULL && end < line + whole ? (size_t)(end - line) : whole;
    while (*length > 0 && line[*length - 1] == ' ') (*length)--;
    return line;
}

/* The good header in which a line replaces the one with the same key, or is inserted before the last line. */
static void edit(const struct format *format, const char *header, const char *line, char out[ROOM])
{
    size_t length, other;
    const char *key = key_of(format, line, &length), *place = NULL, *last = header;
    for (const char *at = header; *at != '\0'; at += strcspn(at, "\n") + 1) {
        const char *own = key_of(format, at, &other);
        place = other == length && strncasecmp(own, key, length) == 0 ? at : place;
        last = at;
    }
    const char *begin = place != NULL ? place : last;
    const char *rest = place != NULL ? place + strcspn(place, "\n") + 1 : last;
    snprintf(out, ROOM, "%.*s%s\n%s", (int)(begin - header), header, line, rest);
}

/* --- tests --- */

/* Puts the line into the good file, and checks that the key has the effect that the table states. */
static void try_line(const struct format *format, const char *line, enum lr_key_outcome outcome)
{
    char header[ROOM], usual_warnings[ROOM], key[128];
    size_t length;
    const char *begin = key_of(format, last_line(line), &length);
    snprintf(key, sizeof(key), "'%.*s'", (int)length, begin);
    char *usual = make(format, format->good);
    if (usual == NULL) fail_msg("%s", fixture.error);
    memcpy(usual_warnings, fixture.warnings, ROOM);
    edit(format, format->good, line, header);
    char *made = make(format, header);
    const bool is_told = strcmp(fixture.warnings, usual_warnings) != 0;
    const bool is_same = made != NULL && strcmp(made, usual) == 0;
    const bool is_right =
        outcome == LR_KEY_READ   ? !is_same || is_told
        : outcome == LR_KEY_IDLE ? is_same && !is_told
        : outcome == LR_KEY_REFUSED
            ? strstr(fixture.error, key) != NULL && strstr(fixture.error, format->name) != NULL
            : is_same && strstr(fixture.warnings, key) != NULL && strstr(fixture.warnings, format->name) != NULL;
    if (!is_right) {
        static const char *const words[] = {"read", "idle", "warned of", "refused"};
        fail_msg("%s: '%s' should be %s: error '%s', warnings '%s'", format->name, line, words[outcome], fixture.error,
                 fixture.warnings);
    }
}

static bool has_trial(const struct lr_known_keys *known, const char *key)
{
    const size_t length = strcspn(key, "*");
    for (int n = 0; n < NUM_TEXTS; n++) {
        for (int t = 0; formats[n].known == known && t < formats[n].num_trials; t++) {
            size_t own_length;
            const char *own = key_of(&formats[n], last_line(formats[n].trials[t].line), &own_length);
            const char *rest = own + length + (own[length] == ' ');
            if (strncasecmp(own, key, length) == 0 && (own_length == length || key[length] == '*' || *rest == '[' ||
                                                       (known->finds_parts && own[length] != ' ')))
                return true;
        }
    }
    return false;
}

static void every_key_does_what_its_table_says(void **state)
{
    char key[128], value[128], line[512];
    for (int n = 0; n < NUM_TEXTS; n++) {
        const struct format *format = &formats[n];
        for (int t = 0; t < format->num_trials; t++)
            try_line(format, format->trials[t].line, format->trials[t].outcome);
        for (int r = 0; r < format->known->count; r++) {
            const struct lr_known_key *row = &format->known->rows[r];
            for (int k = 0; element_of(row->keys, k, key); k++) {
                if (row->outcome == LR_KEY_READ) {
                    if (!has_trial(format->known, key)) fail_msg("%s: no line tries '%s'", format->name, key);
                    continue;
                }
                if (strchr(key, '*') != NULL) *strchr(key, '*') = 'x';
                snprintf(line, sizeof(line), "%s %s 77", key, format->separator);
                try_line(format, line, row->outcome);
                for (int u = 0; row->usual != NULL && element_of(row->usual, u, value); u++) {
                    snprintf(line, sizeof(line), "%s %s %s", key, format->separator, value);
                    try_line(format, line, LR_KEY_IDLE);
                }
            }
        }
        snprintf(line, sizeof(line), "unheard-of key %s 77", format->separator);
        if (format->write == NULL) try_line(format, line, LR_KEY_WARNED);
    }
}

/* Editors may leave a byte order mark, tabs, repeated blanks, and line ends of other systems. */
static void blanks_change_nothing(void **state)
{
    for (int n = 0; n < NUM_TEXTS; n++) {
        const struct format *format = &formats[n];
        const char *good = format->good;
        if (format->write != NULL) continue;
        char *usual = make(format, good);
        for (int way = 0; way < 3 && formats[n].known != &lr_metaimage_keys; way++) {
            char header[ROOM] = "";
            size_t used = way != 1 ? (size_t)snprintf(header, ROOM, "\xef\xbb\xbf") : 0;
            for (const char *at = good; *at != '\0'; at++) {
                const char *part = *at == '\n' && way != 0 ? " \t\r\n" : *at == ' ' && way != 0 ? " \t" : NULL;
                used += (size_t)(part != NULL ? snprintf(header + used, ROOM - used, "%s", part)
                                              : snprintf(header + used, ROOM - used, "%c", *at));
            }
            char *made = make(format, header);
            if (made == NULL || strcmp(made, usual) != 0) fail_msg("%s, way %d: %s", format->name, way, fixture.error);
        }
    }
}

/* Prints the tables of docs/formats/keys.md. */
static void print_tables(char *text, size_t room)
{
    static const char *const outcomes[] = {"read", "changes neither what was measured nor where", "a warning",
                                           "refused"};
    size_t used = 0;
    for (int n = 0; n < NUM_FORMATS; n++) {
        const struct lr_known_keys *known = formats[n].known;
        if (n > 0 && known == formats[n - 1].known) continue;
        used += (size_t)snprintf(text + used, room - used, "\n## %s\n\n| keys | what becomes of them |\n|---|---|\n",
                                 known->format);
        for (int r = 0; r < known->count; r++) {
            const struct lr_known_key *row = &known->rows[r];
            char element[128], outcome[512];
            int length = snprintf(outcome, sizeof(outcome), " | %s", outcomes[row->outcome]);
            for (int u = 0; row->usual != NULL && element_of(row->usual, u, element); u++)
                length += snprintf(outcome + length, 128, "%s%s", u == 0 ? ", unless " : " or ", element);
            snprintf(outcome + length, sizeof(outcome) - (size_t)length, "%s%s |\n", row->meaning != NULL ? ": " : "",
                     row->meaning != NULL ? row->meaning : "");
            for (int k = 0; element_of(row->keys, k, element); k++) {
                used += (size_t)snprintf(text + used, room - used, "%s%s`%s`", k > 0 && k % 12 == 0 ? outcome : "",
                                         k % 12 == 0 ? "| " : ", ", element);
            }
            used += (size_t)snprintf(text + used, room - used, "%s", outcome);
        }
    }
}

static void the_page_has_these_tables(void **state)
{
    static char tables[4 * ROOM];
    char *page = (char *)bytes_read(KEYS_PAGE, NULL);
    print_tables(tables, sizeof(tables));
    const char *begin = strstr(page, "\n## ");
    if (begin == NULL || strcmp(begin, tables) != 0)
        fail_msg("%s has other tables than src/io: put what 'test_io_header_keys print' prints there", KEYS_PAGE);
}

static const char *good_of(const char *name)
{
    const struct format *format = formats;
    while (strcmp(format->name, name) != 0) format++;
    return format->good;
}

static void read_formats(void)
{
    for (struct format *format = formats; format < formats + NUM_TEXTS; format++) {
        format->good = fixture.projection_data;
        for (struct text_cases cases = cases_of(IO_TESTS "/header_keys.txt", format->name); next_case(&cases);) {
            if (strcmp(cases.fields[0], "good") == 0) {
                format->good = cases.fields[1];
                continue;
            }
            assert_true(format->num_trials < length_of(format->trials));
            const bool is_idle = strcmp(cases.fields[0], "idle") == 0;
            format->trials[format->num_trials++] = (struct trial){cases.fields[1], is_idle ? LR_KEY_IDLE : LR_KEY_READ};
        }
    }
}

static int begin(void **state)
{
    const struct test_folder *folder = &fixture.folder;
    float rows[8][6], voxels[60];
    folder_init(&fixture.folder);
    fixture.log = (lr_log){keep_sentence, NULL};
    fixture.even = lors_of(even_ring(8, 90));
    fixture.octagon = lors_of(octagon());
    for (int k = 0; k < 8; k++) { /* four panels of two crystals */
        const double angle = k / 2 * 1.5707963267948966, along = k % 2 == 0 ? -1.6 : 1.6, s = sin(angle),
                     c = cos(angle);
        const double row[6] = {65 * s + along * c, 65 * c - along * s, 0, s, c, 0};
        for (int i = 0; i < 6; i++) rows[k][i] = (float)row[i];
    }
    for (int k = 0; k < 60; k++) voxels[k] = (float)(k + 1);
    const uint32_t list[] = {0, 0, 1, 20, 0, 0, 2, 21};         /* time, time of flight, crystals */
    const uint32_t bins[] = {0, 0x3f800000, 0x40000000, 1, 20}; /* time, two bins, crystals */
    const uint32_t words[] = {0x40000000 | (10 * 16 * 20 + 3 * 20 + 10), 0x40000000 | (2 * 20 + 9),
                              0x40000000 | (3 * 20 + 10)};
    bytes_write(file_in(folder, "x.lut"), rows, sizeof(rows));
    bytes_write(file_in(folder, "voxels"), voxels, sizeof(voxels));
    bytes_write(file_in(folder, "x.Cdf"), list, sizeof(list));
    bytes_write(file_in(folder, "y.Cdf"), bins, sizeof(bins));
    bytes_write(file_in(folder, "x.l"), words, sizeof(words));
    read_formats();
    write_map(file_in(folder, "octagon.map"), good_of("x.map"));
    write_safir(file_in(folder, "octagon.safir"), good_of("x.safir"));
    text_write(file_in(folder, "words.hdr"), words_header);
    const char *path = file_in(folder, "data.hs");
    assert_int_equal(lr_lor_data_write(path, fixture.even, numbered(fixture.even), NULL), LR_OK);
    snprintf(fixture.projection_data, sizeof(fixture.projection_data), "%s", (char *)bytes_read(path, NULL));
    return 0;
}

static int end(void **state)
{
    folder_finish(&fixture.folder);
    return destroy_kept(state);
}

int main(int argc, char **argv)
{
    static char tables[4 * ROOM];
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        print_tables(tables, sizeof(tables));
        fputs(tables, stdout);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        EACH(cmocka_unit_test, every_key_does_what_its_table_says, blanks_change_nothing, the_page_has_these_tables)};
    return cmocka_run_group_tests(tests, begin, end);
}
