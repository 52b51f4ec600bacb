/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NIfTI-1 images in single files (.nii, .nii.gz). LORaster's frame is taken as RAS+ in mm: x = right, y = anterior,
 * z = superior.
 * source: the NIfTI-1 data format, nifti1.h (https://nifti.nimh.nih.gov/nifti-1) */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"
#include "io/images/nifti_header.h"

#include <lr/io.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { header_bytes = sizeof(struct nifti_header), data_offset = 352, max_nifti_size = 32767 };

/* Number of bytes to which one compressed byte expands, usually and at most. */
enum { usual_expansion = 16, most_expansion = 1100 };

/* An open file whose header has been read. */
struct source {
    gzFile file; /* zlib also reads plain files */
    const char *path;
    const lr_log *log;
    struct nifti_header header; /* the header in this machine's byte order */
    bool swapped;
    struct lr_image_layout layout;
    int frame;  /* the requested volume, from 1; 0 = the file must have only one volume */
    int frames; /* number of volumes along the fourth axis */
};

/* --- header --- */

/* All fields of the standard's header. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "sizeof_hdr|dim|datatype|pixdim|vox_offset|scl_slope|scl_inter|xyzt_units|quatern_b|quatern_c|quatern_d|"
     "qoffset_x|qoffset_y|qoffset_z|srow_x|srow_y|srow_z|magic",
     NULL, NULL},
    {LR_KEY_WARNED, "qform_code|sform_code", "0|1|2",
     "its places are those of a standard brain or of an unknown frame, and are taken for the scanner's"},
    {LR_KEY_WARNED, "intent_code", "0|1001|1011|2001", "its numbers are taken for values of voxels"},
    {LR_KEY_WARNED, "bitpix", NULL, "the numbers of its datatype have another length, which counts"},
    {LR_KEY_IDLE,
     "data_type|db_name|extents|session_error|regular|dim_info|intent_p1|intent_p2|intent_p3|slice_start|slice_end|"
     "slice_code|slice_duration|toffset|cal_max|cal_min|glmax|glmin|descrip|aux_file|intent_name|extension",
     NULL, NULL},
};
const struct lr_known_keys lr_nifti_keys = {.format = "NIfTI-1 headers", LR_KNOWN_ROWS(known_keys)};

static void swap(void *numbers, int count, int bytes)
{
    for (char *low = numbers; count > 0; count--, low += bytes) {
        for (int k = 0; k < bytes / 2; k++) {
            const char kept = low[k];
            low[k] = low[bytes - 1 - k];
            low[bytes - 1 - k] = kept;
        }
    }
}

static lr_status read_header(struct source *source)
{
    struct nifti_header *header = &source->header;
    const int got = gzread(source->file, header, header_bytes);
    if (got < 0) {
        char text[128];
        return lr_error(source->log, LR_BAD_INPUT, "cannot read the image %s: %s", source->path,
                        errno != 0 ? lr_error_text(errno, text) : "its compression is damaged");
    }
    if (got != header_bytes) {
        return lr_error(source->log, LR_BAD_INPUT, "%s is not a NIfTI-1 image: it ends within the header of 348 bytes",
                        source->path);
    }
    int32_t size = header->sizeof_hdr;
    if (size != header_bytes) {
        swap(&size, 1, 4);
        source->swapped = true;
    }
    if (size == 540 || header->sizeof_hdr == 540)
        return lr_error(source->log, LR_BAD_INPUT, "%s is a NIfTI-2 image: convert it to NIfTI-1", source->path);
    if (size == header_bytes && memcmp(header->magic, "ni1", 4) == 0) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s is the header of a .hdr/.img pair: convert it to a single .nii file", source->path);
    }
    if (size != header_bytes || memcmp(header->magic, "n+1", 4) != 0) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s is not a NIfTI-1 image: names of images end in " LR_IMAGE_ENDINGS, source->path);
    }
    if (source->swapped) {
        /* Only the numbers that this program uses are swapped. */
        swap(&header->sizeof_hdr, 1, 4);
        swap(header->dim, 8, 2);
        swap(&header->intent_code, 1, 2);
        swap(&header->datatype, 1, 2);
        swap(&header->bitpix, 1, 2);
        swap(header->pixdim, 8, 4);
        swap(&header->vox_offset, 1, 4);
        swap(&header->scl_slope, 1, 4);
        swap(&header->scl_inter, 1, 4);
        swap(&header->qform_code, 1, 2);
        swap(&header->sform_code, 1, 2);
        swap(header->quatern, 3, 4);
        swap(header->qoffset, 3, 4);
        swap(header->srow, 12, 4);
    }

    const int16_t *dim = header->dim;
    if (dim[0] < 1 || dim[0] > 7)
        return lr_error(source->log, LR_BAD_INPUT, "%s says it has %d dimensions: need 3", source->path, dim[0]);
    for (int f = 1; f <= dim[0]; f++) {
        if (dim[f] <= 0) {
            return lr_error(source->log, LR_BAD_INPUT, "%s has size %d along its axis %d: need 1 or more", source->path,
                            dim[f], f);
        }
        if (dim[f] > 1 && f > 4) {
            return lr_error(source->log, LR_BAD_INPUT,
                            "%s holds %d volumes along its axis %d: split it and give one volume", source->path, dim[f],
                            f);
        }
    }
    source->frames = dim[0] > 3 ? dim[4] : 1;
    LR_TRY(lr_image_check_frame(source->path, source->frame, source->frames, source->log));
    for (int f = 0; f < 3; f++) source->layout.size[f] = f < dim[0] ? dim[f + 1] : 1;
    return LR_OK;
}

/* --- places of voxels --- */

/* Returns the shortest decimal that rounds to the float: 0.45 for 0.45f, not 0.449999988. A grid thus stays the same
 * when it is written and read again. */
static double shortest_decimal(float value)
{
    for (int digits = 1; digits < 9; digits++) {
        char text[32];
        snprintf(text, sizeof(text), "%.*e", digits - 1, (double)value);
        const double decimal = strtod(text, NULL);
        if ((float)decimal == value) return decimal;
    }
    return (double)value;
}

/* Computes the affine of the qform, which scales by the steps along the axes, and then rotates by a unit quaternion (a,
 * b, c, d) with a >= 0. A negative qfac changes the sign of the third step. */
static void read_qform(const struct nifti_header *header, float affine[3][4])
{
    double b = (double)header->quatern[0], c = (double)header->quatern[1], d = (double)header->quatern[2];
    double a = 1.0 - (b * b + c * c + d * d);
    if (a < 1e-7) { /* half a turn, up to rounding */
        const double length = sqrt(b * b + c * c + d * d);
        a = 0.0;
        b /= length;
        c /= length;
        d /= length;
    } else {
        a = sqrt(a);
    }
    const double rotation[3][3] = {
        {a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
        {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
        {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c},
    };
    for (int f = 0; f < 3; f++) {
        const double sign = f == 2 && header->pixdim[0] < 0.0f ? -1.0 : 1.0;
        for (int k = 0; k < 3; k++) affine[k][f] = (float)(rotation[k][f] * sign * (double)header->pixdim[f + 1]);
        affine[f][3] = header->qoffset[f];
    }
}

/* Warns if the header contradicts its sform: if the voxel sizes in pixdim differ by more than 1 %, or if the qform
 * moves a corner of the image by more than a tenth of a voxel. */
static void compare_sform(const struct source *source, const float qform[3][4])
{
    const struct nifti_header *header = &source->header;
    const int *size = source->layout.size;
    double least_step = INFINITY;
    for (int f = 0; f < 3; f++) {
        double step = 0.0;
        for (int k = 0; k < 3; k++) step = hypot(step, (double)header->srow[k][f]);
        const double other = (double)header->pixdim[f + 1];
        if (f < header->dim[0] && other > 0.0 && fabs(other - step) > 0.01 * step) {
            lr_warn(source->log,
                    "%s: its sform has voxels of %g along its axis %d, and pixdim has %g: the sform is taken",
                    source->path, step, f + 1, other);
            return;
        }
        least_step = fmin(least_step, step);
    }
    for (int corner = 0; corner < 8 && header->qform_code > 0; corner++) {
        double distance = 0.0;
        for (int k = 0; k < 3; k++) {
            double away = (double)header->srow[k][3] - (double)qform[k][3];
            for (int f = 0; f < 3; f++)
                away += (corner >> f & 1) * (size[f] - 1) * ((double)header->srow[k][f] - (double)qform[k][f]);
            distance = hypot(distance, away);
        }
        if (distance <= 0.1 * least_step) continue;
        lr_warn(
            source->log,
            "%s: its sform and its qform put a corner %.3g voxels apart: the sform is taken; delete the one that is "
            "out of date",
            source->path, distance / least_step);
        return;
    }
}

/* Takes the sform. If the sform is missing, takes the qform. If the qform is missing, too, takes only the voxel sizes.
 * The NIfTI-1 standard prefers the qform. This reader prefers the sform, as others do, because registration programs
 * update it. */
static lr_status read_affine(const struct source *source, double affine[3][4])
{
    struct nifti_header header = source->header;
    float matrix[3][4];
    for (int f = header.dim[0] + 1; f <= 3; f++)
        if (!(header.pixdim[f] > 0.0f)) header.pixdim[f] = header.pixdim[1];
    if (header.qform_code <= 0) {
        header.pixdim[0] = 1.0f;
        memset(header.quatern, 0, sizeof(header.quatern));
        memset(header.qoffset, 0, sizeof(header.qoffset));
    }
    read_qform(&header, matrix);
    if (header.sform_code > 0) {
        compare_sform(source, (const float(*)[4])matrix);
        memcpy(matrix, header.srow, sizeof(matrix));
    } else {
        for (int f = 1; f <= 3; f++) {
            if (header.pixdim[f] > 0.0f && header.pixdim[f] < INFINITY) continue;
            return lr_error(source->log, LR_BAD_INPUT,
                            "%s has a voxel size of %g along its axis %d: repair its pixdim or give it an sform",
                            source->path, (double)header.pixdim[f], f);
        }
        if (header.qform_code <= 0) {
            lr_warn(source->log,
                    "%s has no position (neither sform nor qform): its first voxel is put at "
                    "(0, 0, 0) mm; set its sform",
                    source->path);
        }
    }
    const int unit = header.xyzt_units & NIFTI_LENGTH_BITS;
    const double unit_mm = unit == NIFTI_METRE ? 1000.0 : unit == NIFTI_MICRON ? 1e-3 : 1.0;
    if (unit > NIFTI_MICRON)
        lr_warn(source->log, "%s: its xyzt_units name no unit of length that there is: mm are taken", source->path);
    for (int k = 0; k < 3; k++)
        for (int f = 0; f < 4; f++) affine[k][f] = unit_mm * shortest_decimal(matrix[k][f]);
    return LR_OK;
}

/* Returns the type of the numbers in the file. The type is invalid for colours, complex numbers and long double. */
static struct lr_number_type type_of(const struct source *source)
{
    static const struct {
        int datatype;
        struct lr_number_type type;
    } known[] = {{NIFTI_UINT8, {LR_KIND_UNSIGNED, 1, false}},  {NIFTI_INT8, {LR_KIND_SIGNED, 1, false}},
                 {NIFTI_UINT16, {LR_KIND_UNSIGNED, 2, false}}, {NIFTI_INT16, {LR_KIND_SIGNED, 2, false}},
                 {NIFTI_UINT32, {LR_KIND_UNSIGNED, 4, false}}, {NIFTI_INT32, {LR_KIND_SIGNED, 4, false}},
                 {NIFTI_UINT64, {LR_KIND_UNSIGNED, 8, false}}, {NIFTI_INT64, {LR_KIND_SIGNED, 8, false}},
                 {NIFTI_FLOAT32, {LR_KIND_FLOAT, 4, false}},   {NIFTI_FLOAT64, {LR_KIND_FLOAT, 8, false}}};
    const unsigned one = 1;
    const bool little_host = *(const unsigned char *)&one == 1;
    struct lr_number_type type = {LR_KIND_NONE, 0, source->swapped == little_host};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        if (known[k].datatype == source->header.datatype) {
            type.kind = known[k].type.kind;
            type.bytes = known[k].type.bytes;
        }
    }
    return type;
}

/* Opens a file and reads its header. frame: see struct source. */
static lr_status open_source(struct source *source, const char *path, int frame, const lr_log *log)
{
    *source = (struct source){.path = path, .log = log, .frame = frame};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an image file needs a name");
    FILE *file = lr_file_open(path, "the image ", log);
    if (file == NULL) return LR_BAD_INPUT;
    const int number = dup(fileno(file));
    fclose(file);
    source->file = number >= 0 ? gzdopen(number, "rb") : NULL;
    if (source->file == NULL) {
        if (number >= 0) close(number);
        return lr_error(log, LR_FAILED, "no memory to read the image %s", path);
    }
    lr_status status = read_header(source);
    if (status == LR_OK) {
        const int *size = source->layout.size;
        struct lr_image_place place = {.path = source->path, .field = "sform", .size = {size[0], size[1], size[2]}};
        status = read_affine(source, place.affine);
        if (status == LR_OK) status = lr_image_layout_find(&place, &source->layout, source->log);
    }
    if (status == LR_OK) {
        /* Some fields change the meaning of the image, so their values are logged. */
        const struct nifti_header *header = &source->header;
        const struct lr_number_type type = type_of(source);
        char qform[8], sform[8], intent[8], bits[8];
        struct lr_keyed_line lines[] = {{"qform_code", qform, 0, 0},
                                        {"sform_code", sform, 0, 0},
                                        {"intent_code", intent, 0, 0},
                                        {"bitpix", bits, 0, 0}};
        snprintf(qform, sizeof(qform), "%d", header->qform_code);
        snprintf(sform, sizeof(sform), "%d", header->sform_code);
        snprintf(intent, sizeof(intent), "%d", header->intent_code);
        const bool is_other = header->bitpix != 8 * type.bytes && lr_number_type_is_valid(&type);
        snprintf(bits, is_other ? sizeof(bits) : 1, "%d", header->bitpix);
        const struct lr_keyed_text text = {
            .path = source->path, .log = source->log, .lines = lines, .count = sizeof(lines) / sizeof(lines[0])};
        status = lr_keyed_text_judge(&text, &lr_nifti_keys);
    }

    if (status != LR_OK) gzclose(source->file);
    return status;
}

/* --- values --- */

/* One line along the file's first axis. */
struct line {
    unsigned char *raw; /* owned */
    double *numbers;    /* owned */
    struct lr_number_type type;
    double slope, intercept;
};

static lr_status read_lines(struct source *source, struct line *line, const lr_progress *progress, lr_image *image)
{
    const int *size = source->layout.size;
    const unsigned bytes = (unsigned)(size[0] * line->type.bytes);
    const int64_t total = (int64_t)size[1] * size[2];
    int error = Z_OK;
    for (int64_t number = 0; number < total; number++) {
        if (number % size[1] == 0)
            LR_TRY(lr_progress_report(progress, "reading an image", (double)number, (double)total));
        const int got = gzread(source->file, line->raw, bytes);
        if (got < 0 || (unsigned)got != bytes) {
            const char *why = gzerror(source->file, &error);
            if (error == Z_ERRNO) return lr_error(source->log, LR_BAD_INPUT, "cannot read the image %s", why);
            return lr_error(source->log, LR_BAD_INPUT,
                            "%s is truncated or damaged: its values end in line %lld of %lld: get it again",
                            source->path, (long long)number + 1, (long long)total);
        }
        lr_numbers_convert(&line->type, line->raw, size[0], line->numbers);
        for (int n = 0; n < size[0]; n++) line->numbers[n] = line->numbers[n] * line->slope + line->intercept;
        const struct lr_image_line put = {
            source->path, line->numbers, {0, (int)(number % size[1]), (int)(number / size[1])}};
        LR_TRY(lr_image_layout_put(&source->layout, &put, image, source->log));
    }

    /* A compressed file is complete only if it ends with the correct checksum. */
    if (gzdirect(source->file)) return LR_OK;
    char rest[4096];
    int got;
    do {
        got = gzread(source->file, rest, sizeof(rest));
    } while (got > 0);
    (void)gzerror(source->file, &error);
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s is truncated or damaged: its compressed data has no valid end: get it again", source->path);
    }
    return LR_OK;
}

/* Returns the number of bytes of all volumes before the requested one. and_own: true if the requested volume is
 * included. */
static double volumes_bytes(const struct source *source, bool and_own)
{
    const int *size = source->layout.size;
    const int each = type_of(source).bytes;
    const int before = source->frame > 0 ? source->frame - 1 : 0;
    return (double)size[0] * size[1] * size[2] * (each > 0 ? each : 1) * (before + (and_own ? 1 : 0));
}

/* Compares the header's sizes with the file's length, before memory for the image is allocated. A compressed file is
 * expanded for this check only if the sizes would need unusually good compression. */
static lr_status check_bytes(struct source *source)
{
    const int *size = source->layout.size;
    const double offset = (double)source->header.vox_offset;
    const double wanted = (offset > 0.0 && offset < 0x1p30 ? offset : 0.0) + volumes_bytes(source, true);
    struct stat facts;
    if (stat(source->path, &facts) != 0 || !S_ISREG(facts.st_mode) || wanted <= (double)facts.st_size) return LR_OK;
    const bool packed = gzdirect(source->file) == 0;
    if (packed && wanted <= usual_expansion * (double)facts.st_size) return LR_OK;
    if (packed && wanted <= most_expansion * (double)facts.st_size) {
        char piece[16384];
        int got = 0;
        int64_t left = (int64_t)wanted;
        gzrewind(source->file);
        while (left > 0 && (got = gzread(source->file, piece, sizeof(piece))) > 0) left -= got;
        gzrewind(source->file);
        if (left <= 0) return LR_OK;
    }
    return lr_error(source->log, LR_BAD_INPUT,
                    "%s is truncated or damaged: its header promises %d x %d x %d voxels, %.4g "
                    "bytes, and it has %lld%s: get it again",
                    source->path, size[0], size[1], size[2], wanted, (long long)facts.st_size,
                    packed ? ", compressed" : "");
}

static lr_status read_values(struct source *source, const lr_progress *progress, lr_image *image)
{
    static const struct {
        int datatype;
        const char *name;
    } others[] = {{1, "BINARY"},        {32, "COMPLEX64"},    {128, "RGB24"},  {1536, "FLOAT128"},
                  {1792, "COMPLEX128"}, {2048, "COMPLEX256"}, {2304, "RGBA32"}};
    struct line line = {0};
    const struct nifti_header *header = &source->header;
    line.type = type_of(source);
    if (!lr_number_type_is_valid(&line.type)) {
        char text[32];
        snprintf(text, sizeof(text), "%d", header->datatype);
        const char *name = text;
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            name = others[k].datatype == header->datatype ? others[k].name : name;
        return lr_error(source->log, LR_BAD_INPUT, "%s holds numbers of the type %s: convert them to float32",
                        source->path, name);
    }
    /* A slope of 0 or NaN means that the values are not scaled. */
    const double slope = (double)header->scl_slope, intercept = (double)header->scl_inter;
    const bool scaled = slope != 0.0 && !isnan(slope);
    if (scaled && !(isfinite(slope) && isfinite(intercept))) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s scales its numbers by %g and adds %g: repair its scl_slope and scl_inter", source->path,
                        slope, intercept);
    }
    line.slope = scaled ? slope : 1.0;
    line.intercept = scaled ? intercept : 0.0;
    const double offset = (double)header->vox_offset;
    if (!(offset >= header_bytes && offset <= 0x1p30 && offset == floor(offset))) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s says that its values start at byte %g: its header is damaged (352 is usual)", source->path,
                        offset);
    }
    const double begin = offset + volumes_bytes(source, false);
    if (gzseek(source->file, (z_off_t)begin, SEEK_SET) < 0)
        return lr_error(source->log, LR_BAD_INPUT, "%s ends before its values, at byte %g", source->path, begin);

    const int count = source->layout.size[0];
    line.raw = lr_alloc(count, (size_t)line.type.bytes, "a line of voxels", source->log);
    line.numbers = lr_alloc(count, sizeof(double), "a line of voxels", source->log);
    lr_status status = LR_FAILED;
    if (line.raw != NULL && line.numbers != NULL) status = read_lines(source, &line, progress, image);
    lr_free_all(line.raw, line.numbers);
    return status;
}

static lr_status read_image(const struct lr_image_request *request, lr_grid *grid, lr_image **image)
{
    struct source source;
    LR_TRY(open_source(&source, request->path, request->frame, request->log));
    lr_status status = LR_OK;
    *grid = source.layout.grid;
    if (image != NULL) {
        status = check_bytes(&source);
        if (status == LR_OK) *image = lr_image_create(grid, request->log);
        if (status == LR_OK) status = *image != NULL ? read_values(&source, request->progress, *image) : LR_FAILED;
        if (status != LR_OK) {
            lr_image_destroy(*image);
            *image = NULL;
        }
    }
    gzclose(source.file);
    return status;
}

static int count_frames(const char *path, double *step_s)
{
    struct source source;
    if (open_source(&source, path, 1, NULL) != LR_OK) return 0;
    gzclose(source.file);
    const int unit = source.header.xyzt_units & NIFTI_TIME_BITS;
    const double unit_s = unit == NIFTI_SECOND        ? 1.0
                          : unit == NIFTI_MILLISECOND ? 1e-3
                          : unit == NIFTI_MICROSECOND ? 1e-6
                                                      : 0.0;
    *step_s = source.header.pixdim[4] > 0.0f ? unit_s * source.header.pixdim[4] : 0.0;
    return source.frames;
}

lr_status lr_nifti_write(const char *path, const lr_image_frames *frames, const lr_log *log)
{
    const lr_grid *grid = &frames->images[0]->grid;
    const int sizes[4] = {grid->size[0], grid->size[1], grid->size[2], frames->count};
    for (int k = 0; k < 4; k++) {
        static const char *const what[] = {"voxels along x", "voxels along y", "voxels along z", "frames"};
        if (sizes[k] > max_nifti_size) {
            return lr_error(log, LR_BAD_INPUT, "%s cannot hold %d %s: NIfTI-1 allows %d", path, sizes[k], what[k],
                            max_nifti_size);
        }
    }
    struct nifti_header header = {.sizeof_hdr = header_bytes, .regular = 'r'};
    header.dim[0] = frames->count > 1 ? 4 : 3;
    header.pixdim[0] = 1.0f; /* qfac 1 = right-handed */
    for (int k = 0; k < 3; k++) {
        header.dim[k + 1] = (int16_t)grid->size[k];
        header.pixdim[k + 1] = (float)grid->voxel_mm[k];
        header.srow[k][k] = (float)grid->voxel_mm[k];
        header.srow[k][3] = header.qoffset[k] = (float)grid->origin_mm[k];
    }
    for (int k = 4; k < 8; k++) header.dim[k] = 1;
    header.dim[4] = (int16_t)frames->count;
    header.pixdim[4] = (float)frames->step_s;
    header.qform_code = NIFTI_SCANNER_ANATOMY;
    header.sform_code = NIFTI_SCANNER_ANATOMY;
    header.datatype = NIFTI_FLOAT32;
    header.bitpix = 32;
    header.vox_offset = data_offset;
    header.scl_slope = 1.0f;
    header.xyzt_units = frames->step_s > 0.0 ? NIFTI_MILLIMETRE | NIFTI_SECOND : NIFTI_MILLIMETRE;
    snprintf(header.descrip, sizeof(header.descrip), "LORaster %s", lr_version());
    memcpy(header.magic, "n+1", 4);

    struct lr_output output;
    const unsigned char no_extensions[4] = {0};
    const size_t bytes = (size_t)lr_grid_num_voxels(grid) * sizeof(float);
    struct lr_piece *pieces = lr_alloc(frames->count + 2, sizeof(*pieces), "the frames of an image", log);
    if (pieces == NULL) return LR_FAILED;
    pieces[0] = (struct lr_piece){&header, header_bytes};
    pieces[1] = (struct lr_piece){no_extensions, sizeof(no_extensions)};
    for (int k = 0; k < frames->count; k++) pieces[k + 2] = (struct lr_piece){frames->images[k]->values, bytes};
    lr_status status = lr_output_open(&output, path, log);
    if (status != LR_OK) {
        free(pieces);
        return status;
    }
    if (lr_path_ends(path, ".gz"))
        status = lr_output_deflate(&output, pieces, frames->count + 2);
    else
        for (int n = 0; n < frames->count + 2 && status == LR_OK; n++)
            status = lr_output_write(&output, pieces[n].bytes, pieces[n].count);
    free(pieces);
    if (status != LR_OK) {
        lr_output_abandon(&output);
        return LR_FAILED;
    }
    return lr_output_finish(&output);
}

static lr_status write_image(const char *path, const lr_image *image, const lr_log *log)
{
    return lr_nifti_write(path, &(lr_image_frames){&image, 1, 0.0}, log);
}

const struct lr_image_format lr_image_nifti = {read_image, write_image, count_frames};
