/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Interfile images: a text header and a file of float32 voxels, in two dialects. The key "first pixel offset (mm)"
 * has a different meaning in each.
 *
 * STIR (.hv + .v): x, y and z all point opposite to LORaster's axes, so that all three are reversed (sources:
 * docs/formats/images.md). The offsets along x and y are the coordinates of the first voxel's centre, from the
 * scanner's axis. The offset along z is the distance of the image's middle plane from the scanner's centre,
 * according to STIR's projectors (DataSymmetriesForBins_PET_CartesianGrid.cxx). If the key is missing, the axis
 * passes through voxel n/2, also for even n.
 *
 * CASToR (.hdr + .img): left-handed, with LORaster's y and z and the opposite x. The offset is the position of the
 * image's middle, from the scanner's centre; 0 if the key is missing. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Keys in InterfileHeader.cxx and InterfileHeaderSiemens.cxx of STIR 6.2, in oInterfileIO.cc of CASToR 3.1.1, and in
 * headers of Siemens and GATE. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "name of data file|imagedata byte order|image data byte order|number format|number of bytes per pixel|"
     "matrix size|matrix axis label|data offset in bytes|data starting block|version of keys|"
     "sms-mi header name space|scaling factor (mm/pixel)|scale factor (mm/pixel)|first pixel offset (mm)|origin (mm)|"
     "offset|number of slices|number of images|total number of images|slice thickness (pixels)|"
     "centre-centre slice separation (pixels)|center-center slice separation (pixels)|image scaling factor|"
     "quantification units|rescale slope|data rescale slope|rescale intercept|data rescale intercept|"
     "data rescale offset|number of time frames",
     NULL, NULL},
    {LR_KEY_REFUSED,
     "number of frame groups|number of time windows|number of respiratory gates|"
     "number of cardiac gates|number of image data types|total number of data sets",
     "0|1", "split it and give one image"},
    {LR_KEY_REFUSED, "slice orientation", "transverse|transaxial|axial|unknown|0",
     "only transverse slices can be read: reformat it"},
    {LR_KEY_REFUSED, "data compression", "none", "save it without compression"},
    {LR_KEY_REFUSED, "data encode", "none", "save its voxels as plain binary numbers"},
    {LR_KEY_WARNED, "pet data type", "Image", "its numbers are taken for voxels"},
    {LR_KEY_WARNED, "process status", "Reconstructed", "its numbers are taken for voxels"},
    {LR_KEY_WARNED, "number of dimensions", "3", "its first three axes are read"},
    {LR_KEY_WARNED, "image scale factor", "1", "voxels are not multiplied by it"},
    {LR_KEY_WARNED, "calibration factor", "1|0|-1", "voxels are not multiplied by it"},
    {LR_KEY_WARNED, "patient orientation", "hfs|head_in|head in|unknown|0",
     "the axes are taken for those of HFS, head first on the back: turn the image if they are the patient's own"},
    {LR_KEY_WARNED, "patient rotation", "supine|unknown|0",
     "the axes are taken for those of HFS, head first on the back: turn the image if they are the patient's own"},
    {LR_KEY_WARNED, "gantry tilt angle (degrees)|gantry rotation (degrees)", "0",
     "the image is taken to stand upright"},
    {LR_KEY_WARNED, "gantry offset (mm)|x-offset (mm)|y-offset (mm)", "0",
     "the image is taken to be where the scanner is: move it by that"},
    {LR_KEY_WARNED, "horizontal bed relative position (mm)|start horizontal bed position (mm)", "0",
     "the image is taken to be where the scanner is: move it along z by that"},
    {LR_KEY_WARNED, "start vertical bed position (mm)", "0",
     "the image is taken to be where the scanner is: move it along y by that"},
    {LR_KEY_IDLE,
     LR_INTERFILE_IDLE_KEYS
     "|data format|image data type description|index nesting level|maximum pixel count|minimum pixel count|"
     "originating system|imaging modality|type of data|study duration (sec)|image start time (sec)|"
     "pause between frame groups (sec)|horizontal bed translation|end horizontal bed position (mm)|"
     "radiopharmaceutical|relative time of tracer injection (sec)|tracer*|injected volume (ml)|decay correction*|"
     "method of*|scatter fraction*|pet scanner type|reconstruction*|number of iterations|number of subsets|filter*|"
     "listmode*|sinogram*|frame group number|time window number|number of images in*|number of detector heads|"
     "number of projections|extent of rotation|program author|program version|program date",
     NULL, NULL},
};
const struct lr_known_keys lr_interfile_image_keys = {.format = "Interfile images", LR_KNOWN_ROWS(known_keys)};

/* --- reading --- */

static bool is_castor(const struct lr_keyed_text *file)
{
    const char *version = lr_interfile_text(file, "version of keys", 0);
    if (version != NULL && strncasecmp(version, "castor", 6) == 0) return true;
    const bool stir = version != NULL && strncasecmp(version, "stir", 4) == 0;
    const bool siemens = lr_interfile_text(file, "sms-mi header name space", 0) != NULL;
    return !stir && !siemens && lr_path_ends(file->path, ".hdr");
}

/* Reads the size, voxel edge and offset of axis f. *offset_mm: NaN if the offset is missing. */
static lr_status read_axis(const struct lr_keyed_text *file, int f, int *size, double *voxel_mm, double *offset_mm)
{
    int64_t number = 0;
    *voxel_mm = 0.0;
    *offset_mm = NAN;
    if (f == 2) {
        /* Keys of Interfile 3.3 for the number and thickness of slices. GATE reads and writes the thickness in mm,
         * although the key says pixels. */
        LR_TRY(lr_interfile_integer(file, "total number of images", 0, &number));
        LR_TRY(lr_interfile_integer(file, "number of images", 0, &number));
        LR_TRY(lr_interfile_integer(file, "number of slices", 0, &number));
        LR_TRY(lr_interfile_number(file, "slice thickness (pixels)", 0, voxel_mm));
        double apart_mm = *voxel_mm;
        LR_TRY(lr_interfile_number(file, "centre-centre slice separation (pixels)", 0, &apart_mm));
        LR_TRY(lr_interfile_number(file, "center-center slice separation (pixels)", 0, &apart_mm));
        if (*voxel_mm > 0.0 && fabs(apart_mm - *voxel_mm) > 1e-4 * *voxel_mm) {
            return lr_error(file->log, LR_BAD_INPUT,
                            "%s: its slices are %g thick and %g from centre-centre: resample it to slices that touch",
                            file->path, *voxel_mm, apart_mm);
        }
    }
    LR_TRY(lr_interfile_integer(file, "matrix size", f + 1, &number));
    LR_TRY(lr_interfile_number(file, "scale factor (mm/pixel)", f + 1, voxel_mm)); /* key of Siemens */
    LR_TRY(lr_interfile_number(file, "scaling factor (mm/pixel)", f + 1, voxel_mm));
    LR_TRY(lr_interfile_number(file, "offset", f + 1, offset_mm)); /* key of CASToR */
    LR_TRY(lr_interfile_number(file, "origin (mm)", f + 1, offset_mm));
    LR_TRY(lr_interfile_number(file, "first pixel offset (mm)", f + 1, offset_mm));
    if (number < 1 || number > INT32_MAX) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: matrix size [%d] must be a number of voxels, 1 or more",
                        file->path, f + 1);
    }
    *size = (int)number;
    return *voxel_mm > 0.0 ? LR_OK
                           : lr_error(file->log, LR_BAD_INPUT,
                                      "%s: scaling factor (mm/pixel) [%d] must be a voxel's edge, greater than 0",
                                      file->path, f + 1);
}

/* Reads a factor from a key of STIR or CASToR. *factor is unchanged if the value is the name of a unit. */
static lr_status read_factor(const struct lr_keyed_text *file, const char *key, int index, double *factor)
{
    const char *text = lr_interfile_text(file, key, index);
    const bool is_name = text != NULL && strspn(text, "+-.0123456789") == 0;
    if (is_name && *text != '{') return LR_OK;
    return lr_interfile_number(file, key, index, factor);
}

/* Finds the number of volumes: of time frames, or along a fourth axis. */
static lr_status count_volumes(const struct lr_keyed_text *file, int64_t *count)
{
    int64_t times = 1, fourth = 1;
    LR_TRY(lr_interfile_integer(file, "number of time frames", 0, &times));
    LR_TRY(lr_interfile_integer(file, "matrix size", 4, &fourth));
    *count = times > 1 ? times : fourth > 1 ? fourth : 1;
    if (*count > INT32_MAX || (times > 1 && fourth > 1 && times != fourth)) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: holds %lld time frames, and %lld volumes along its fourth axis: split it and give one "
                        "image",
                        file->path, (long long)times, (long long)fourth);
    }
    return LR_OK;
}

/* Finds where the voxels of a frame begin. Frames follow each other, unless the header gives a frame's own place. */
static lr_status find_frame(const struct lr_keyed_text *file, int frame, int64_t frame_bytes, int64_t *offset_bytes)
{
    int64_t own = 0;
    const bool has_own = lr_interfile_find(file, "data offset in bytes", frame) != NULL;
    const bool scales_first = lr_interfile_find(file, "image scaling factor", 1) != NULL;
    if (scales_first && lr_interfile_find(file, "image scaling factor", frame) == NULL)
        return lr_error(file->log, LR_BAD_INPUT, "%s: lacks 'image scaling factor [%d]', the scale of frame %d",
                        file->path, frame, frame);
    if (lr_interfile_find(file, "matrix size", 3) == NULL && lr_interfile_find(file, "number of slices", 0) == NULL) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: does not say how many slices a frame has: add 'matrix size [3] := SLICES'", file->path);
    }
    LR_TRY(lr_interfile_integer(file, "data offset in bytes", frame, &own));
    if (own < 0) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: 'data offset in bytes [%d]' is %lld: it cannot be negative",
                        file->path, frame, (long long)own);
    }
    if (has_own) {
        *offset_bytes = own;
    } else {
        const bool fits = frame - 1 <= (INT64_MAX - *offset_bytes) / frame_bytes;
        *offset_bytes = fits ? *offset_bytes + (frame - 1) * frame_bytes : INT64_MAX;
    }
    return LR_OK;
}

static lr_status read_header(const struct lr_keyed_text *file, int frame, struct lr_voxels *voxels,
                             struct lr_image_layout *layout)
{
    if (!file->has_start && !is_castor(file)) {
        return lr_error(file->log, LR_BAD_INPUT, "%s: does not begin with '!INTERFILE', so it is no Interfile header",
                        file->path);
    }
    const char *label = lr_interfile_text(file, "matrix axis label", 1);
    if (label != NULL && strcasecmp(label, "x") != 0) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: its first axis is '%.64s': it holds no image with the axes x, y, z", file->path, label);
    }
    int64_t volumes;
    LR_TRY(count_volumes(file, &volumes));
    LR_TRY(lr_image_check_frame(file->path, frame, (int)volumes, file->log));
    LR_TRY(lr_keyed_text_judge(file, &lr_interfile_image_keys));
    const bool castor = is_castor(file);
    struct lr_image_place place = {.path = file->path, .field = "scaling factors"};
    for (int f = 0; f < 3; f++) {
        double voxel_mm, offset_mm;
        LR_TRY(read_axis(file, f, &place.size[f], &voxel_mm, &offset_mm));
        const bool given = !isnan(offset_mm);
        offset_mm = given ? offset_mm : 0.0;
        const double half_mm = 0.5 * (place.size[f] - 1) * voxel_mm;
        const double sign = castor && f != 0 ? 1.0 : -1.0;
        double first_mm = -(given ? offset_mm : -(place.size[f] / 2) * voxel_mm);
        if (castor)
            first_mm = sign * (offset_mm - half_mm);
        else if (f == 2)
            first_mm = half_mm - offset_mm;
        place.affine[f][f] = sign * voxel_mm;
        place.affine[f][3] = first_mm;
    }
    LR_TRY(lr_image_layout_find(&place, layout, file->log));
    LR_TRY(lr_interfile_number_type(file, &voxels->type, &voxels->offset_bytes));
    if (volumes > 1) {
        const int64_t frame_bytes = lr_grid_num_voxels(&layout->grid) * voxels->type.bytes;
        LR_TRY(find_frame(file, frame, frame_bytes, &voxels->offset_bytes));
    }
    /* Each dialect has its own factors. "quantification units" is another name for the factor in STIR, and a second
     * factor in CASToR. */
    static const char *const slopes[] = {"rescale slope", "data rescale slope"};
    static const char *const intercepts[] = {"rescale intercept", "data rescale intercept", "data rescale offset"};
    double units = 1.0, factor = 1.0;
    voxels->slope = 1.0;
    voxels->intercept = 0.0;
    LR_TRY(read_factor(file, "quantification units", 0, &units));
    for (int k = 0; k < 2; k++) {
        LR_TRY(read_factor(file, slopes[k], 0, &voxels->slope));
        const int index = k == 1 && frame > 0 ? frame : k;
        const char *text = lr_interfile_text(file, "image scaling factor", index);
        if (text != NULL && *text != '{') /* a list has one factor per plane */
            LR_TRY(read_factor(file, "image scaling factor", index, &factor));
    }
    for (int k = 0; k < 3; k++) LR_TRY(read_factor(file, intercepts[k], 0, &voxels->intercept));
    voxels->slope *= castor || factor == 1.0 ? factor * units : factor;

    /* Siemens headers and the shortest CASToR headers have no end mark. */
    const bool siemens = lr_interfile_text(file, "sms-mi header name space", 0) != NULL;
    return siemens || !file->has_start ? LR_OK : lr_keyed_text_need_end(file);
}

/* Scales planes by STIR's "image scaling factor := {a, b, ...}", which has one factor per plane of the frame. */
static lr_status scale_planes(const struct lr_keyed_text *file, int frame, lr_image *image)
{
    const int *size = image->grid.size;
    const int64_t plane = (int64_t)size[0] * size[1];
    for (int k = 0; k < 2; k++) {
        const int index = k == 1 && frame > 0 ? frame : k;
        const char *at = lr_interfile_text(file, "image scaling factor", index);
        if (at == NULL || *at != '{') continue;
        const struct lr_c_locale locale = lr_c_locale_enter();
        int count = 0;
        for (at++; *at != '}' && *at != '\0'; count++) {
            char *end;
            const double factor = strtod(at, &end);
            if (end == at || !isfinite(factor)) break;
            for (int64_t v = 0; count < size[2] && v < plane; v++)
                image->values[(size[2] - 1 - count) * plane + v] *= (float)factor; /* z is reversed */
            at = end + strspn(end, " \t,");
        }
        lr_c_locale_leave(locale);
        if (*at != '}' || count != size[2]) {
            return lr_error(file->log, LR_BAD_INPUT,
                            "%s:%d: 'image scaling factor' must be one number, or a list {a, b, ...} of one for each "
                            "of the %d planes",
                            file->path, lr_interfile_find(file, "image scaling factor", index)->number, size[2]);
        }
    }
    return LR_OK;
}

static lr_status read_image(const struct lr_image_request *request, lr_grid *grid, lr_image **image)
{
    const char *path = request->path;
    const lr_log *log = request->log;
    struct lr_keyed_text file;
    struct lr_voxels voxels = {.progress = request->progress};
    struct lr_image_layout layout;
    LR_TRY(lr_keyed_text_read(&file, path, &lr_interfile_dialect, log));
    lr_status status = read_header(&file, request->frame, &voxels, &layout);
    if (status == LR_OK) *grid = layout.grid;
    if (status == LR_OK && image != NULL) {
        char *data_path = lr_interfile_data_path(&file);
        voxels.path = data_path;
        if (data_path != NULL) {
            struct lr_discreet_log discreet;
            lr_log_discreet(&discreet, data_path, path, log);
            *image = lr_voxels_read(&voxels, &layout, &discreet.log);
            if (*image != NULL && scale_planes(&file, request->frame, *image) != LR_OK) {
                lr_image_destroy(*image);
                *image = NULL;
            }
        }
        free(data_path);
        status = *image != NULL ? LR_OK : LR_BAD_INPUT;
    }
    lr_keyed_text_finish(&file);
    return status;
}

static int count_frames(const char *path, double *step_s)
{
    struct lr_keyed_text file;
    int64_t count = 0;
    double begin_s[3] = {NAN, NAN, NAN}; /* of the first and second frame, and of another one */
    if (lr_keyed_text_read(&file, path, &lr_interfile_dialect, NULL) != LR_OK) return 0;
    if (count_volumes(&file, &count) != LR_OK) count = 0;
    for (int64_t frame = 1; frame <= count; frame++) {
        double *at_s = &begin_s[frame < 3 ? frame - 1 : 2];
        *at_s = NAN;
        (void)lr_interfile_number(&file, "image relative start time (sec)", (int)frame, at_s);
        const double expected_s = begin_s[0] + (double)(frame - 1) * (begin_s[1] - begin_s[0]);
        *step_s = frame == 2 ? *at_s - begin_s[0] : *step_s;
        if (frame > 1 && !(*step_s > 0.0 && fabs(*at_s - expected_s) <= 1e-6 * expected_s)) {
            *step_s = 0.0;
            break;
        }
    }
    lr_keyed_text_finish(&file);
    return (int)count;
}

/* --- writing --- */

static double middle_mm(const lr_grid *grid, int k)
{
    return grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
}

/* Prints sizes, voxel edges and offsets. Their keys are the same in both dialects. */
static void print_axes(struct lr_text *text, const lr_grid *grid, const double offset_mm[3])
{
    for (int k = 0; k < 3; k++) {
        (void)lr_text_print(text,
                            "!matrix size [%d] := %d\n"
                            "scaling factor (mm/pixel) [%d] := %.15g\n"
                            "first pixel offset (mm) [%d] := %.15g\n",
                            k + 1, grid->size[k], k + 1, grid->voxel_mm[k], k + 1,
                            offset_mm[k] + 0.0); /* adding 0 turns -0 into 0 */
    }
}

void lr_interfile_print_stir(struct lr_text *text, const char *data_name, const lr_grid *grid)
{
    double offset_mm[3] = {0, 0, -middle_mm(grid, 2)};
    for (int k = 0; k < 2; k++) offset_mm[k] = -(grid->origin_mm[k] + (grid->size[k] - 1) * grid->voxel_mm[k]);
    const struct lr_c_locale locale = lr_c_locale_enter();
    (void)lr_text_print(text,
                        "!INTERFILE :=\n"
                        "!imaging modality := PT\n"
                        "name of data file := %s\n"
                        "!version of keys := STIR4.0\n"
                        "!GENERAL DATA :=\n"
                        "!GENERAL IMAGE DATA :=\n"
                        "!type of data := PET\n"
                        "imagedata byte order := LITTLEENDIAN\n"
                        "!PET STUDY (General) :=\n"
                        "!PET data type := Image\n"
                        "process status := Reconstructed\n"
                        "!number format := float\n"
                        "!number of bytes per pixel := 4\n"
                        "number of dimensions := 3\n"
                        "matrix axis label [1] := x\n"
                        "matrix axis label [2] := y\n"
                        "matrix axis label [3] := z\n",
                        data_name);
    print_axes(text, grid, offset_mm);
    (void)lr_text_print(text, "number of time frames := 1\n!END OF INTERFILE :=\n");
    lr_c_locale_leave(locale);
}

static void print_castor(struct lr_text *text, const char *data_name, const lr_grid *grid)
{
    const double offset_mm[3] = {-middle_mm(grid, 0), middle_mm(grid, 1), middle_mm(grid, 2)};
    const struct lr_c_locale locale = lr_c_locale_enter();
    (void)lr_text_print(text,
                        "!INTERFILE :=\n"
                        "!imaging modality := PET\n"
                        "!version of keys := CASToRv3.1\n"
                        "!GENERAL DATA :=\n"
                        "!originating system := LORaster %s\n"
                        "!data offset in bytes := 0\n"
                        "!name of data file := %s\n"
                        "!GENERAL IMAGE DATA :=\n"
                        "!type of data := Static\n"
                        "!total number of images := %d\n"
                        "imagedata byte order := LITTLEENDIAN\n"
                        "!STATIC STUDY (General) :=\n"
                        "number of dimensions := 3\n"
                        "!number format := short float\n"
                        "!number of bytes per pixel := 4\n",
                        lr_version(), data_name, grid->size[2]);
    print_axes(text, grid, offset_mm);
    (void)lr_text_print(text, "data rescale offset := 0\n"
                              "data rescale slope := 1\n"
                              "quantification units := 1\n"
                              "!image duration (sec) := 1\n"
                              "!image start time (sec) := 0\n"
                              "!END OF INTERFILE :=\n");
    lr_c_locale_leave(locale);
}

static lr_status write_image(const char *path, const lr_image *image, const lr_log *log)
{
    const bool castor = lr_path_ends(path, ".hdr");
    char *data_path = lr_path_with_ending(path, castor ? ".img" : ".v", log);
    if (data_path == NULL) return LR_FAILED;
    struct lr_text header = {.what = "a header", .log = log};
    (castor ? print_castor : lr_interfile_print_stir)(&header, lr_path_name(data_path), &image->grid);
    const struct lr_image_pair pair = {path, data_path, header.chars, {true, !castor, !castor}};
    const lr_status status = !header.failed ? lr_image_pair_write(&pair, image, log) : LR_FAILED;
    lr_free_all(header.chars, data_path);
    return status;
}

const struct lr_image_format lr_image_interfile = {read_image, write_image, count_frames};
