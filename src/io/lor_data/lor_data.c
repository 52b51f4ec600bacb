/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data in files: the choice of a format, and checks. */
#include "base/log.h"
#include "base/path.h"
#include "io/images/formats.h"
#include "io/lor_data/lor_formats.h"

#include <math.h>

lr_status lr_lor_file_check_some(const struct lr_lor_file_place *place, const lr_lors *lors, const lr_lor_data *some,
                                 const lr_log *log)
{
    int64_t before = place->before;
    for (int64_t n = 0; n < some->count; n++) {
        const int64_t lor = some->index == NULL ? place->first + n : some->index[n];
        if (some->index != NULL && (lor < 0 || lor >= lors->count)) {
            return lr_error(log, LR_BAD_INPUT, "%s names LOR %lld at place %lld, but they run from 0 to %lld",
                            place->what, (long long)lor, (long long)(place->first + n), (long long)lors->count - 1);
        }
        if (lor <= before) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s lists LOR %lld after %lld at place %lld: LORs must be sorted and "
                            "listed once",
                            place->what, (long long)lor, (long long)before, (long long)(place->first + n));
        }
        if (!isfinite(some->values[n])) {
            return lr_error(log, LR_BAD_INPUT, "%s holds %g for LOR %lld: values must be finite", place->what,
                            (double)some->values[n], (long long)lor);
        }
        before = lor;
    }
    return LR_OK;
}

lr_status lr_lor_file_check(const char *what, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    const struct lr_lor_file_place begin = {.what = what, .before = -1};
    if (data->index == NULL && data->count != lors->count) {
        return lr_error(log, LR_BAD_INPUT, "%s has %lld values, the scanner %s has %lld LORs", what,
                        (long long)data->count, lors->scanner->name, (long long)lors->count);
    }
    return lr_lor_file_check_some(&begin, lors, data, log);
}

/* The name's ending decides alone: a text header cannot be mistaken for HDF5. */
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

lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    if (refuse_bins(path, log) != LR_OK) return NULL;
    return is_projdata(path) ? lr_lor_projdata_read(path, lors, log) : lr_lor_hdf5_read(path, lors, log);
}

lr_status lr_lor_data_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log)
{
    LR_TRY(refuse_bins(path, log));
    if (!is_projdata(path)) return lr_lor_hdf5_scan(path, lors, sink, log);
    lr_lor_data *all = lr_lor_projdata_read(path, lors, log);
    const lr_status status = all != NULL ? sink->take(sink->user, all, 0) : LR_BAD_INPUT;
    lr_lor_data_destroy(all);
    return status;
}

lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    LR_TRY(lr_lor_file_check("the LOR data to be written", lors, data, log));
    return is_projdata(path) ? lr_lor_projdata_write(path, lors, data, log) : lr_lor_hdf5_write(path, lors, data, log);
}
