/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which format a file of LOR data has. */
#include "base/log.h"
#include "base/path.h"
#include "io/images/formats.h"
#include "io/lor_data/lor_formats.h"

#include <math.h>

lr_status lr_lor_file_check(const char *what, const lr_lors *lors, const lr_lor_data *data,
                            const lr_log *log)
{
    if (data->index == NULL && data->count != lors->count) {
        return lr_error(log, LR_BAD_INPUT, "%s has %lld values, the scanner %s has %lld LORs", what,
                        (long long)data->count, lors->scanner->name, (long long)lors->count);
    }
    for (int64_t n = 0; n < data->count; n++) {
        const int64_t lor = data->index == NULL ? n : data->index[n];
        if (data->index != NULL && (lor < 0 || lor >= lors->count)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s names LOR %lld at place %lld, but they run from 0 to %lld", what,
                            (long long)lor, (long long)n, (long long)lors->count - 1);
        }
        if (data->index != NULL && n > 0 && lor <= data->index[n - 1]) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s lists LOR %lld after %lld at place %lld: LORs must be sorted and "
                            "listed once",
                            what, (long long)lor, (long long)data->index[n - 1], (long long)n);
        }
        if (!isfinite(data->values[n])) {
            return lr_error(log, LR_BAD_INPUT, "%s holds %g for LOR %lld: values must be finite",
                            what, (double)data->values[n], (long long)lor);
        }
    }
    return LR_OK;
}

/* By the name's ending alone: a header could hardly be taken for HDF5. */
static bool is_projdata(const char *path)
{
    return path != NULL && lr_path_ends(path, ".hs");
}

lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    if (path != NULL && lr_path_ends(path, ".s")) {
        (void)lr_error(log, LR_BAD_INPUT,
                       "%s holds bins without saying which: name the header, which ends in .hs",
                       path);
        return NULL;
    }
    return is_projdata(path) ? lr_lor_projdata_read(path, lors, log)
                             : lr_lor_hdf5_read(path, lors, log);
}

lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data,
                            const lr_log *log)
{
    LR_TRY(lr_lor_file_check("the LOR data to be written", lors, data, log));
    return is_projdata(path) ? lr_lor_projdata_write(path, lors, data, log)
                             : lr_lor_hdf5_write(path, lors, data, log);
}
