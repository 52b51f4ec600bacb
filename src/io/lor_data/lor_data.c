/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data in files: the choice of a format. */
#include "io/lor_data/lor_data.h"

#include "base/log.h"
#include "base/path.h"

/* Only the ending of the name decides. */
static bool is_projdata(const char *path)
{
    return path != NULL && lr_path_ends(path, ".hs");
}

static lr_status refuse_bins(const char *path, const lr_log *log)
{
    return path != NULL && lr_path_ends(path, ".s")
               ? lr_error(log, LR_BAD_INPUT, "%s holds bins without saying which: name the header, which ends in .hs",
                          path)
               : LR_OK;
}

lr_lor_data *lr_lor_data_read_watched(const char *path, const lr_lors *lors, const lr_progress *progress,
                                      const lr_log *log)
{
    if (refuse_bins(path, log) != LR_OK) return NULL;
    return is_projdata(path) ? lr_lor_projdata_read(path, lors, progress, log)
                             : lr_lor_hdf5_read(path, lors, progress, log);
}

lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    return lr_lor_data_read_watched(path, lors, NULL, log);
}

lr_status lr_lor_data_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    LR_TRY(refuse_bins(path, log));
    if (!is_projdata(path)) return lr_lor_hdf5_scan(path, lors, sink, log);
    struct lr_watched_log watch;
    lr_log_watch(&watch, log);
    watch.status = LR_CANCELLED; /* LR_CANCELLED is the only status without a message */
    lr_lor_data *all = lr_lor_projdata_read(path, lors, sink->progress, &watch.log);
    const lr_status status = all != NULL ? sink->take(sink->user, all, 0) : watch.status;
    lr_lor_data_destroy(all);
    return status;
}

lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    LR_TRY(lr_lor_file_check("the LOR data to be written", lors, data, log));
    return is_projdata(path) ? lr_lor_projdata_write(path, lors, data, log) : lr_lor_hdf5_write(path, lors, data, log);
}
