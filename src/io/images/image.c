/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images in files. The format is chosen by the name's ending or by the first bytes. */
#include "base/log.h"
#include "base/path.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *ending;
    const struct lr_image_format *format; /* NULL = a file of voxels, whose header is another file */
    const char *header;                   /* ending of that header */
} endings[] = {
    {".nii", &lr_image_nifti, NULL},
    {".nii.gz", &lr_image_nifti, NULL},
    {".hv", &lr_image_interfile, NULL},
    {".hdr", &lr_image_interfile, NULL},
    {".mhd", &lr_image_metaimage, NULL},
    {".mha", &lr_image_metaimage, NULL},
    {".npy", &lr_image_npy, NULL},
    {".v", NULL, ".hv"},
    {".img", NULL, ".hdr"},
    {".raw", NULL, ".mhd"},
};

enum { num_endings = sizeof(endings) / sizeof(endings[0]) };

static int find_ending(const char *path)
{
    for (int k = 0; k < num_endings; k++)
        if (lr_path_ends(path, endings[k].ending)) return k;
    return -1;
}

/* Recognises a format by the first bytes. A file that fits no format is taken as NIfTI, which may be compressed. The
 * NIfTI reader reports the fault of a file that it cannot read. */
static const struct lr_image_format *recognise(const struct lr_file_head *head)
{
    static const struct {
        const char *start;
        const struct lr_image_format *format;
    } known[] = {{"!INTERFILE", &lr_image_interfile},
                 {"INTERFILE", &lr_image_interfile},
                 {"ObjectType", &lr_image_metaimage},
                 {"NDims", &lr_image_metaimage},
                 {"\x93NUMPY", &lr_image_npy}};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (lr_head_begins(head, known[k].start, strlen(known[k].start))) return known[k].format;
    return &lr_image_nifti;
}

bool lr_image_recognises(const struct lr_file_head *head)
{
    char file[PATH_MAX];
    snprintf(file, sizeof(file), "%s", head->path);
    (void)lr_path_cut_frame(file);
    const int k = find_ending(file);
    const struct lr_image_format *found = recognise(head);
    return (k >= 0 && endings[k].format != NULL) || found == &lr_image_metaimage || found == &lr_image_npy;
}

/* Finds the format of an image. errors: NULL, logged, if the file cannot be an image. */
static const struct lr_image_format *format_to_read(const char *path, const lr_log *log)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    const int k = find_ending(path);
    if (k >= 0 && endings[k].format == NULL && recognise(&head) == &lr_image_nifti) {
        (void)lr_error(log, LR_BAD_INPUT,
                       "%s holds an image's voxels without its grid: name the header, which ends in %s", path,
                       endings[k].header);
        return NULL;
    }
    if (k < 0 || endings[k].format == NULL) return recognise(&head);
    /* NIfTI and Analyze headers begin with 348 in either byte order. The NIfTI reader reports their faults. */
    const bool other_hdr = lr_path_ends(path, ".hdr") && (lr_head_begins(&head, "\x5c\x01\x00\x00", 4) ||
                                                          lr_head_begins(&head, "\x00\x00\x01\x5c", 4));
    return other_hdr ? &lr_image_nifti : endings[k].format;
}

/* The file that a path names, and its format. A path may end with the number of a frame: "pet.nii:3". */
struct image_file {
    char path[PATH_MAX];
    int frame;                            /* 0 = the path has no frame number */
    const struct lr_image_format *format; /* NULL = the file cannot be read, and an error has been logged */
};

static struct image_file find_file(const char *path, const lr_log *log)
{
    struct image_file file = {.frame = 0};
    if (path == NULL || path[0] == '\0') {
        (void)lr_error(log, LR_USAGE, "an image file needs a name");
        return file;
    }
    if (strlen(path) >= sizeof(file.path)) {
        (void)lr_error(log, LR_BAD_INPUT, "the name of an image file has more than %d characters: %.40s...",
                       PATH_MAX - 1, path);
        return file;
    }
    memcpy(file.path, path, strlen(path) + 1);
    file.frame = lr_path_cut_frame(file.path);
    file.format = format_to_read(file.path, log);
    if (file.format != NULL && file.format->count_frames == NULL && file.frame > 1) {
        (void)lr_error(log, LR_BAD_INPUT, "%s has no frame %d: it has 1", file.path, file.frame);
        file.format = NULL;
    }
    return file;
}

/* Reads an image. Adds the file's name to errors of the grid's checks, which do not know the name. */
static lr_image *read_file(const struct image_file *file, struct lr_image_request request)
{
    struct lr_named_log named;
    lr_grid grid;
    lr_image *image = NULL;
    lr_log_name(&named, file->path, request.log);
    request.path = file->path;
    request.log = &named.log;
    if (file->frame > 0) request.frame = file->frame;
    if (file->format != NULL) (void)file->format->read(&request, &grid, &image);
    return image;
}

lr_image *lr_image_read_on(const char *path, const lr_grid *grid, const lr_log *log)
{
    const struct image_file file = find_file(path, log);
    if (file.format == &lr_image_npy && grid != NULL)
        return lr_grid_check(grid, log) == LR_OK ? lr_npy_image_read(file.path, grid, log) : NULL;
    return read_file(&file, (struct lr_image_request){.log = log});
}

lr_image *lr_image_read(const char *path, const lr_log *log)
{
    return lr_image_read_on(path, NULL, log);
}

int lr_image_num_frames(const char *path, double *step_s)
{
    const struct image_file file = find_file(path, NULL);
    double found_s = 0.0;
    const bool may_have_several = file.frame == 0 && file.format != NULL && file.format->count_frames != NULL;
    const int count = may_have_several ? file.format->count_frames(file.path, &found_s) : file.format != NULL;
    if (step_s != NULL) *step_s = found_s;
    return count;
}

lr_image *lr_image_read_frame(const char *path, int frame, const lr_log *log)
{
    return lr_image_read_watched(path, frame, NULL, log);
}

lr_image *lr_image_read_watched(const char *path, int frame, const lr_progress *progress, const lr_log *log)
{
    const struct image_file file = find_file(path, log);
    if (file.format == NULL) return NULL;
    if (frame < 1) {
        (void)lr_error(log, LR_USAGE, "%s: frame %d: they are counted from 1", path, frame);
        return NULL;
    }
    if ((file.frame > 0 || file.format->count_frames == NULL) && frame > 1) {
        (void)lr_error(log, LR_BAD_INPUT, "%s has no frame %d: it has 1", path, frame);
        return NULL;
    }
    return read_file(&file, (struct lr_image_request){.frame = frame, .progress = progress, .log = log});
}

lr_status lr_grid_read(const char *path, lr_grid *grid, const lr_log *log)
{
    const struct image_file file = find_file(path, log);
    if (file.format == NULL) return path == NULL || path[0] == '\0' ? LR_USAGE : LR_BAD_INPUT;
    struct lr_named_log named;
    lr_log_name(&named, file.path, log);
    /* All frames have the grid of the first. */
    const int frame = file.frame > 0 ? file.frame : file.format->count_frames != NULL;
    return file.format->read(&(struct lr_image_request){.path = file.path, .frame = frame, .log = &named.log}, grid,
                             NULL);
}

/* Refuses values that readers would refuse. */
static lr_status check_values(const char *path, const lr_image *image, const lr_log *log)
{
    LR_TRY(lr_grid_check(&image->grid, log));
    const int64_t count = lr_grid_num_voxels(&image->grid);
    for (int64_t row = 0; row < count; row++) {
        if (!isfinite(image->values[row])) {
            const int *size = image->grid.size;
            return lr_error(log, LR_BAD_INPUT, "the image for %s holds %g in voxel (%lld, %lld, %lld)", path,
                            (double)image->values[row], (long long)(row % size[0]),
                            (long long)(row / size[0] % size[1]), (long long)(row / size[0] / size[1]));
        }
    }
    return LR_OK;
}

lr_status lr_image_write(const char *path, const lr_image *image, const lr_log *log)
{
    const int k = path != NULL ? find_ending(path) : -1;
    if (k < 0 || endings[k].format == NULL)
        return lr_error(log, LR_USAGE, "the image file %s must end in " LR_IMAGE_ENDINGS, path ? path : "(none)");
    LR_TRY(check_values(path, image, log));
    return endings[k].format->write(path, image, log);
}

lr_status lr_image_write_frames(const char *path, const lr_image_frames *frames, const lr_log *log)
{
    if (frames->count < 1)
        return lr_error(log, LR_USAGE, "no images for %s: give at least one", path ? path : "(none)");
    if (path == NULL || !(lr_path_ends(path, ".nii") || lr_path_ends(path, ".nii.gz"))) {
        return lr_error(log, LR_USAGE, "several images go into one NIfTI file: %s must end in .nii or .nii.gz",
                        path ? path : "(none)");
    }
    for (int k = 0; k < frames->count; k++) {
        LR_TRY(check_values(path, frames->images[k], log));
        if (!lr_grid_same(&frames->images[0]->grid, &frames->images[k]->grid))
            return lr_error(log, LR_USAGE, "image %d for %s has another grid than the first", k + 1, path);
    }
    return lr_nifti_write(path, frames, log);
}
