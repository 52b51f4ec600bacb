/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * ITK's MetaImage: "Key = value" lines, then the voxels (.mha) or the name of the file that holds them
 * (.mhd + .raw). ITK's frame is LPS+ in mm: x and y point opposite to LORaster's axes. Row i of TransformMatrix is the
 * direction of the file's axis i. Offset is the centre of the first voxel. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_HEADER = 65536 };

/* Keys in metaObject.cxx and metaImage.cxx of MetaIO. ITK also ignores the keys with LR_KEY_IDLE. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "NDims|DimSize|ElementSpacing|ElementSize|Offset|Position|Origin|TransformMatrix|Orientation|Rotation|"
     "ElementType|ElementByteOrderMSB|BinaryDataByteOrderMSB|HeaderSize|ElementDataFile",
     NULL, NULL},
    {LR_KEY_REFUSED, "ObjectType", "Image", "only images can be read"},
    {LR_KEY_REFUSED, "CompressedData", "False|F|0", "it is compressed: save it as plain, uncompressed binary numbers"},
    {LR_KEY_REFUSED, "BinaryData", "True|T|1", "it is written as text: save it as plain, uncompressed binary numbers"},
    {LR_KEY_REFUSED, "ElementNumberOfChannels", "1", "it is an image of several channels: save one of them"},
    {LR_KEY_REFUSED, "ElementToIntensityFunctionSlope", "1", "it is stored in units of its own: save its values"},
    {LR_KEY_REFUSED, "ElementToIntensityFunctionOffset", "0", "it is stored in units of its own: save its values"},
    {LR_KEY_REFUSED, "HeaderSizePerSlice", "0", "its slices lie apart: save them as one block"},
    {LR_KEY_WARNED, "DistanceUnits", "mm|?", "lengths are taken for mm"},
    {LR_KEY_IDLE,
     "ObjectSubType|Comment|Name|ID|ParentID|Color|CompressedDataSize|CompressionLevel|TransformType|"
     "CenterOfRotation|AnatomicalOrientation|Modality|SequenceID|ElementMin|ElementMax|ElementNBits|AcquisitionDate",
     NULL, NULL},
};
const struct lr_known_keys lr_metaimage_keys = {.format = "MetaImage headers", LR_KNOWN_ROWS(known_keys)};

/* Values of a header. */
struct meta {
    const char *path;
    const lr_log *log;
    int64_t dims, size[3], header_bytes;
    double spacing_mm[3], element_mm[3], offset_mm[3], matrix[9];
    struct lr_number_type type;
    char type_name[64];
    char *data_name;    /* owned: value of ElementDataFile */
    int64_t local_data; /* offset of the data in this file, bytes */
};

/* --- values --- */

/* Reads `count` numbers separated by spaces. */
static bool scan_numbers(const char *value, int count, double *numbers)
{
    for (int k = 0; k < count; k++) {
        char *end = NULL;
        numbers[k] = strtod(value, &end);
        if (end == value || !isfinite(numbers[k])) return false;
        value = end;
    }
    return value[strspn(value, " \t")] == '\0';
}

static bool scan_whole(const char *value, int count, int64_t *numbers)
{
    double found[3] = {0};
    if (!scan_numbers(value, count, found)) return false;
    for (int k = 0; k < count; k++) {
        if (found[k] != floor(found[k]) || fabs(found[k]) > 1e15) return false;
        numbers[k] = (int64_t)found[k];
    }
    return true;
}

static bool is_one_of(const char *key, const char *a, const char *b, const char *c)
{
    return strcasecmp(key, a) == 0 || (b != NULL && strcasecmp(key, b) == 0) || (c != NULL && strcasecmp(key, c) == 0);
}

/* Takes the value of a key. Returns false if the value is invalid. */
static bool take_value(struct meta *meta, const char *key, const char *value)
{
    if (is_one_of(key, "NDims", NULL, NULL)) return scan_whole(value, 1, &meta->dims);
    if (is_one_of(key, "DimSize", NULL, NULL)) return meta->dims != 3 || scan_whole(value, 3, meta->size);
    if (is_one_of(key, "ElementSpacing", NULL, NULL))
        return meta->dims != 3 || scan_numbers(value, 3, meta->spacing_mm);
    if (is_one_of(key, "ElementSize", NULL, NULL)) /* used if ElementSpacing is missing */
        return meta->dims != 3 || scan_numbers(value, 3, meta->element_mm);
    if (is_one_of(key, "Offset", "Position", "Origin"))
        return meta->dims != 3 || scan_numbers(value, 3, meta->offset_mm);
    if (is_one_of(key, "TransformMatrix", "Orientation", "Rotation"))
        return meta->dims != 3 || scan_numbers(value, 9, meta->matrix);

    if (is_one_of(key, "ElementType", NULL, NULL)) {
        /* MET_LONG is missing, because it has 4 or 8 bytes, depending on the program that wrote it. */
        static const struct {
            const char *name;
            enum lr_number_kind kind;
            int bytes;
        } known[] = {{"MET_CHAR", LR_KIND_SIGNED, 1},      {"MET_UCHAR", LR_KIND_UNSIGNED, 1},
                     {"MET_SHORT", LR_KIND_SIGNED, 2},     {"MET_USHORT", LR_KIND_UNSIGNED, 2},
                     {"MET_INT", LR_KIND_SIGNED, 4},       {"MET_UINT", LR_KIND_UNSIGNED, 4},
                     {"MET_LONG_LONG", LR_KIND_SIGNED, 8}, {"MET_ULONG_LONG", LR_KIND_UNSIGNED, 8},
                     {"MET_FLOAT", LR_KIND_FLOAT, 4},      {"MET_DOUBLE", LR_KIND_FLOAT, 8}};
        snprintf(meta->type_name, sizeof(meta->type_name), "%s", value);
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
            if (strcasecmp(value, known[k].name) == 0) {
                meta->type.kind = known[k].kind;
                meta->type.bytes = known[k].bytes;
            }
        }
        return true;
    }

    if (is_one_of(key, "ElementByteOrderMSB", "BinaryDataByteOrderMSB", NULL)) {
        bool *flag = &meta->type.big_endian;
        *flag = *value == 'T' || *value == 't' || *value == '1';
        return *flag || *value == 'F' || *value == 'f' || *value == '0';
    }

    if (is_one_of(key, "HeaderSize", NULL, NULL))
        return scan_whole(value, 1, &meta->header_bytes) && meta->header_bytes >= -1;
    return true;
}

/* --- header --- */

/* Parses lines up to ElementDataFile, which is always the last line, and checks the values. */
static lr_status parse(struct meta *meta, char *text, struct lr_keyed_text *lines)
{
    for (char *line = text; meta->data_name == NULL;) {
        if (line == NULL || *line == '\0') {
            return lr_error(meta->log, LR_BAD_INPUT, "%s is no whole MetaImage header: ElementDataFile is missing",
                            meta->path);
        }
        char *end = strchr(line, '\n');
        char *next = end != NULL ? end + 1 : NULL;
        char *sign = strchr(line, '=');
        if (end == NULL || sign == NULL || sign > end) {
            return lr_error(meta->log, LR_BAD_INPUT, "%s is no MetaImage: '%.32s' is not \"Key = value\"", meta->path,
                            line);
        }
        *end = '\0';
        *sign = '\0';
        for (char *at = sign; at > line && (at[-1] == ' ' || at[-1] == '\t');) *--at = '\0';
        char *value = sign + 1 + strspn(sign + 1, " \t");
        for (size_t k = strlen(value); k > 0 && strchr(" \t\r", value[k - 1]) != NULL;) value[--k] = '\0';
        lines->lines[lines->count] = (struct lr_keyed_line){line, value, lines->count + 1, 0};
        lines->count++;
        if (strcasecmp(line, "ElementDataFile") == 0) {
            if (isnan(meta->spacing_mm[0])) memcpy(meta->spacing_mm, meta->element_mm, sizeof(meta->spacing_mm));
            meta->local_data = next - text;
            meta->data_name = lr_copy_string(value, meta->log);
            if (meta->data_name == NULL) return LR_FAILED;
        } else if (!take_value(meta, line, value)) {
            return lr_error(meta->log, LR_BAD_INPUT, "%s: '%s = %.64s' makes no sense", meta->path, line, value);
        }
        line = next;
    }

    LR_TRY(lr_keyed_text_judge(lines, &lr_metaimage_keys));
    if (meta->dims != 3)
        return lr_error(meta->log, LR_BAD_INPUT, "%s has %lld dimensions: need 3", meta->path, (long long)meta->dims);
    for (int f = 0; f < 3; f++) {
        if (meta->size[f] < 1 || meta->size[f] > INT32_MAX) {
            return lr_error(meta->log, LR_BAD_INPUT, "%s has size %lld along its axis %d: need 1 or more", meta->path,
                            (long long)meta->size[f], f + 1);
        }
    }
    if (!lr_number_type_is_valid(&meta->type)) {
        return lr_error(meta->log, LR_BAD_INPUT, "%s holds numbers of the type '%s': convert them to MET_FLOAT",
                        meta->path, meta->type_name);
    }
    if (strcmp(meta->data_name, "LIST") == 0 || strchr(meta->data_name, '%') != NULL || meta->data_name[0] == '\0') {
        return lr_error(meta->log, LR_BAD_INPUT, "%s spreads its voxels over several files: save it as one",
                        meta->path);
    }
    return LR_OK;
}

/* --- voxels --- */

static lr_status read_image(const struct lr_image_request *request, lr_grid *grid, lr_image **image)
{
    const char *path = request->path;
    const lr_log *log = request->log;
    struct meta meta = {.path = path,
                        .log = log,
                        .spacing_mm = {NAN, NAN, NAN},
                        .element_mm = {1.0, 1.0, 1.0},
                        .matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    struct lr_image_layout layout;
    char *data_path = NULL;
    char *text = lr_alloc(MAX_HEADER + 1, 1, "a header", log);
    struct lr_keyed_text lines = {.path = path, .log = log};
    lines.lines = lr_alloc(MAX_HEADER / 2, sizeof(*lines.lines), "a header", log);
    const bool has_room = text != NULL && lines.lines != NULL;
    FILE *file = has_room ? lr_file_open(path, "the image ", log) : NULL;
    lr_status status = !has_room ? LR_FAILED : file == NULL ? LR_BAD_INPUT : LR_OK;
    if (status == LR_OK) {
        const size_t got = fread(text, 1, MAX_HEADER, file);
        text[got] = '\0';
        const struct lr_c_locale locale = lr_c_locale_enter();
        status = parse(&meta, text, &lines);
        lr_c_locale_leave(locale);
    }
    if (file != NULL) fclose(file);
    lr_free_all(text, lines.lines);
    if (status != LR_OK) {
        free(meta.data_name);
        return status;
    }

    static const double sign[3] = {-1.0, -1.0, 1.0}; /* LPS to RAS */
    struct lr_image_place place = {.path = path, .field = "TransformMatrix"};
    for (int k = 0; k < 3; k++) {
        place.size[k] = (int)meta.size[k];
        for (int f = 0; f < 3; f++) place.affine[k][f] = sign[k] * meta.matrix[3 * f + k] * meta.spacing_mm[f];
        place.affine[k][3] = sign[k] * meta.offset_mm[k];
    }
    status = lr_image_layout_find(&place, &layout, log);
    if (status == LR_OK) *grid = layout.grid;

    const bool is_local = strcasecmp(meta.data_name, "LOCAL") == 0;
    if (status == LR_OK && image != NULL)
        data_path = is_local ? lr_copy_string(path, log) : lr_path_beside(path, meta.data_name, log);
    if (data_path != NULL) {
        struct lr_voxels voxels = {data_path, meta.type, 0, 1.0, 0.0, request->progress};
        if (is_local) {
            voxels.offset_bytes = meta.local_data;
        } else if (meta.header_bytes > 0) {
            voxels.offset_bytes = meta.header_bytes;
        } else if (meta.header_bytes < 0) { /* the voxels end with the file */
            const int64_t rest = lr_file_length(data_path) - lr_grid_num_voxels(&layout.grid) * meta.type.bytes;
            voxels.offset_bytes = rest > 0 ? rest : 0;
        }
        struct lr_discreet_log discreet;
        lr_log_discreet(&discreet, data_path, path, log);
        *image = lr_voxels_read(&voxels, &layout, &discreet.log);
    }
    if (status == LR_OK && image != NULL && *image == NULL) status = LR_BAD_INPUT;
    lr_free_all(data_path, meta.data_name);
    return status;
}

/* --- writing --- */

static lr_status write_image(const char *path, const lr_image *image, const lr_log *log)
{
    const bool local = lr_path_ends(path, ".mha");
    char *data_path = lr_path_with_ending(path, ".raw", log);
    if (data_path == NULL) return LR_FAILED;
    const char *data_name = local ? "LOCAL" : lr_path_name(data_path);
    const double *voxel = image->grid.voxel_mm;
    double offset_mm[3];
    for (int k = 0; k < 3; k++) {
        const double last = image->grid.origin_mm[k] + (image->grid.size[k] - 1) * voxel[k];
        offset_mm[k] = (k < 2 ? -last : image->grid.origin_mm[k]) + 0.0; /* avoids -0 */
    }
    struct lr_text header = {.what = "a header", .log = log};
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = lr_text_print(&header,
                                     "ObjectType = Image\n"
                                     "NDims = 3\n"
                                     "BinaryData = True\n"
                                     "BinaryDataByteOrderMSB = False\n"
                                     "CompressedData = False\n"
                                     "TransformMatrix = 1 0 0 0 1 0 0 0 1\n"
                                     "Offset = %.15g %.15g %.15g\n"
                                     "CenterOfRotation = 0 0 0\n"
                                     "AnatomicalOrientation = RAI\n"
                                     "ElementSpacing = %.15g %.15g %.15g\n"
                                     "DimSize = %d %d %d\n"
                                     "ElementType = MET_FLOAT\n"
                                     "ElementDataFile = %s\n",
                                     offset_mm[0], offset_mm[1], offset_mm[2], voxel[0], voxel[1], voxel[2],
                                     image->grid.size[0], image->grid.size[1], image->grid.size[2], data_name);
    lr_c_locale_leave(locale);

    const struct lr_image_pair pair = {path, data_path, header.chars, {true, true, false}};
    struct lr_output output;
    if (status == LR_OK) status = local ? lr_output_open(&output, path, log) : lr_image_pair_write(&pair, image, log);
    if (local && status == LR_OK) {
        if (lr_output_write(&output, header.chars, strlen(header.chars)) == LR_OK)
            (void)lr_voxels_write(&output, image, pair.reversed);
        status = lr_output_finish(&output);
    }
    lr_free_all(header.chars, data_path);
    return status;
}

const struct lr_image_format lr_image_metaimage = {read_image, write_image, NULL};
