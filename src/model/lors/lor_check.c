/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/lor_check.h"

#include "base/log.h"
#include "base/parallel.h"

#include <float.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static lr_status check_index(const lr_lor_data *data, const lr_lors *lors, const char *name, const lr_log *log)
{
    for (int64_t k = 0; k < data->count; k++) {
        const int64_t lor = data->index[k];
        if (lor < 0 || lor >= lors->count) {
            return lr_error(log, LR_BAD_INPUT, "entry %lld of the %s names LOR %lld: LORs are numbered 0 to %lld",
                            (long long)k, name, (long long)lor, (long long)lors->count - 1);
        }
        if (k > 0 && lor <= data->index[k - 1]) {
            return lr_error(log, LR_BAD_INPUT,
                            "entry %lld of the %s names LOR %lld after LOR %lld: sort the entries "
                            "and join repeated ones",
                            (long long)k, name, (long long)lor, (long long)data->index[k - 1]);
        }
    }
    return LR_OK;
}

const char *lr_lor_name(const lr_lors *lors, int64_t lor, char text[160])
{
    const lr_lor spelled = lr_lors_describe(lors, lor);
    if (lors->scanner == NULL) {
        snprintf(text, 160, "voxel %lld of view %d", (long long)(lor - lors->offsets[spelled.module_i]),
                 spelled.module_i);
    } else {
        snprintf(text, 160, "LOR %lld (crystal %d, %d of module %d with crystal %d, %d of module %d)", (long long)lor,
                 spelled.p, spelled.q, spelled.module_i, spelled.r, spelled.s, spelled.module_j);
    }
    return text;
}

lr_status lr_lor_report_value(const lr_lors *lors, int64_t lor, double value, const char *name, const lr_log *log)
{
    char text[160];
    return lr_error(log, LR_BAD_INPUT, "the %s of %s is %g: values must be finite and at least 0", name,
                    lr_lor_name(lors, lor, text), value);
}

/* Values that a thread takes at a time, whose answers are looked at together, of which compilers make vectors; and
 * how many are worth threads. */
enum { VALUES_AT_ONCE = 1 << 14, MANY_VALUES = 1 << 20 };

static bool is_bad(float value)
{
    return !(value >= 0.0f && value <= FLT_MAX);
}

struct finding {
    const float *values;
    atomic_llong bad; /* the first that is no count, or one behind the last */
};

static void find_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct finding *finding = user;
    const float *values = finding->values;
    int any = 0;
    (void)worker;
    for (int64_t k = begin; k < end; k++) any |= is_bad(values[k]);
    for (int64_t k = begin; any && k < end; k++) {
        if (is_bad(values[k])) {
            lr_lower(&finding->bad, k);
            return;
        }
    }
}

/* The first value that is no count; -1 = there is none. */
static int64_t find_bad(const lr_lor_data *data)
{
    struct finding finding = {.values = data->values};
    const int threads = data->count > MANY_VALUES ? lr_num_processors() : 1;
    atomic_init(&finding.bad, data->count);
    lr_parallel_for(threads, data->count, VALUES_AT_ONCE, find_share, &finding);
    const int64_t bad = atomic_load(&finding.bad);
    return bad < data->count ? bad : -1;
}

lr_status lr_lor_data_check(const lr_lor_data *data, const lr_lors *lors, const char *name, const lr_log *log)
{
    if (data->count < 0 || (data->count > 0 && data->values == NULL))
        return lr_error(log, LR_USAGE, "the %s has no values", name);
    if (data->index == NULL && data->count != lors->count) {
        return lr_error(log, LR_USAGE,
                        "the %s has %lld values, the operator %lld LORs: make both from the same "
                        "scanner",
                        name, (long long)data->count, (long long)lors->count);
    }
    if (data->index != NULL) LR_TRY(check_index(data, lors, name, log));
    const int64_t bad = find_bad(data);
    return bad < 0
               ? LR_OK
               : lr_lor_report_value(lors, data->index != NULL ? data->index[bad] : bad, data->values[bad], name, log);
}
