/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Opening and closing of HDF5 files that are written. */
#include "io/files/hdf5_file.h"

#include "base/log.h"
#include "base/mem.h"
#include "plugin/plugin.h"

#include <errno.h>
#include <stdlib.h>

lr_status lr_hdf5_output_fail(struct lr_hdf5_output *out, const char *what)
{
    if (out->output.error == 0 && !out->broken) {
        out->broken = true;
        if (out->why[0] == '\0') out->h5->explain(out);
        lr_log_write(out->output.log, LR_LOG_ERROR, LR_FAILED, "cannot write %s to %s: %s%s", what, out->output.path,
                     out->why[0] != '\0' ? "HDF5 says: " : "no memory", out->why);
    }
    return LR_FAILED;
}

lr_status lr_hdf5_output_open(struct lr_hdf5_output *out, const char *path, const char *content, const lr_log *log)
{
    *out = (struct lr_hdf5_output){.driver = -1, .file = -1};
    /* HDF5 crashes or ends the program if memory runs out, so 16 MiB are allocated here as a test. */
    enum { ROOM_BYTES = 16 << 20 };
    void *room = lr_alloc(ROOM_BYTES, 1, "writing HDF5", log);
    free(room);
    LR_TRY(room != NULL ? LR_OK : LR_FAILED);

    LR_TRY(lr_plugin_hdf5(log) != NULL ? LR_OK : LR_NO_DEVICE); /* checked first, so that a failure leaves no file */
    LR_TRY(lr_output_open(&out->output, path, log));
    if (out->output.in_place) {
        lr_output_abandon(&out->output);
        return lr_error(log, LR_USAGE, "cannot write HDF5 to %s: it is a device or a pipe: give the name of a file",
                        path);
    }
    return lr_hdf5_output_begin(out, content, NULL);
}

lr_status lr_hdf5_output_begin(struct lr_hdf5_output *out, const char *content, struct lr_hdf5_layout *layout)
{
    const struct lr_hdf5_plugin *plugin = lr_plugin_hdf5(out->output.log);
    if (plugin == NULL) {
        lr_output_abandon(&out->output);
        return LR_NO_DEVICE;
    }
    const struct lr_hdf5_fns *h5 = out->h5 = plugin->fns;
    out->driver = out->file = -1;
    out->broken = false;
    out->why[0] = '\0';
    out->layout = layout;
    out->fail = lr_output_fail;
    if (!h5->open(out) ||
        !(h5->put_string(out->file, "program", "LORaster") && h5->put_string(out->file, "version", lr_version()) &&
          h5->put_string(out->file, "content", content) &&
          h5->put_string(out->file, "frame",
                         "right-handed, millimetres, z along the scanner's axis, origin at the scanner's centre"))) {
        (void)lr_hdf5_output_fail(out, "the file");
        lr_hdf5_output_abandon(out);
        return LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_hdf5_output_finish(struct lr_hdf5_output *out)
{
    if (!out->h5->close(out)) (void)lr_hdf5_output_fail(out, "the end of the file");
    if (out->broken) {
        lr_output_abandon(&out->output);
        return LR_FAILED;
    }
    return lr_output_finish(&out->output);
}

void lr_hdf5_output_abandon(struct lr_hdf5_output *out)
{
    if (out->output.error == 0) out->output.error = ECANCELED; /* HDF5 then drops data that it has not written yet */
    (void)out->h5->close(out);
    lr_output_abandon(&out->output);
}
