/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PNG pictures through libpng. */
#include "base/log.h"
#include "io/files/output.h"

#include <lr/io.h>

#include <png.h>
#include <setjmp.h>
#include <stdio.h>

/* Data of libpng's callbacks. This struct is outside the function that calls setjmp, because longjmp may spoil local
 * variables of that function. */
struct png_job {
    struct lr_output output;
    char message[128]; /* the message from libpng */
};

static void fail(png_structp png, png_const_charp message)
{
    struct png_job *job = png_get_error_ptr(png);
    snprintf(job->message, sizeof(job->message), "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t count)
{
    struct png_job *job = png_get_io_ptr(png);
    if (lr_output_write(&job->output, bytes, count) != LR_OK) png_error(png, "write failed");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* Returns false if libpng gave up. The function has no variables that change between setjmp and longjmp. */
static bool encode(png_structp png, png_infop info, const uint8_t *rgb, const int size[2])
{
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(png, png_get_error_ptr(png), write_bytes, flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)size[0], (png_uint_32)size[1], 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < size[1]; y++) png_write_row(png, rgb + 3 * (size_t)size[0] * (size_t)y);
    png_write_end(png, NULL);
    return true;
}

lr_status lr_png_write(const char *path, const uint8_t *rgb, const int size[2], const lr_log *log)
{
    if (rgb == NULL || size[0] <= 0 || size[1] <= 0) {
        return lr_error(log, LR_USAGE, "a picture for %s needs a positive size, not %d x %d",
                        path ? path : "a PNG file", size[0], size[1]);
    }
    struct png_job job = {.message = ""};
    LR_TRY(lr_output_open(&job.output, path, log));
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, fail, ignore_warning);
    png_infop info = png == NULL ? NULL : png_create_info_struct(png);
    const bool is_written = info != NULL && encode(png, info, rgb, size);
    if (info == NULL)
        lr_error(log, LR_FAILED, "no memory for writing %s", job.output.path);
    else if (!is_written && job.output.error == 0)
        lr_log_write(log, LR_LOG_ERROR, LR_FAILED, "cannot write %s: %s", job.output.path, job.message);
    png_destroy_write_struct(&png, &info);
    if (is_written) return lr_output_finish(&job.output);
    lr_output_abandon(&job.output);
    return LR_FAILED;
}
