/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
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
