/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Events as tab-separated text: what a person or a script looks at. */
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/events/events_writers.h"
#include "io/files/c_locale.h"
#include "io/files/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lr_events_tsv {
    struct lr_output output;
    lr_events_writer_params params; /* what it points to is the caller's */
};

static const char header[] = "time_ms\tdelayed\tweight\tcrystal_a\tcrystal_b\ttof_mm\tx_mm\ty_mm\tz_mm\n";

/* Where the time of flight puts the annihilation. */
static void find_centre(const lr_scanner *scanner, const lr_event *event, double centre_mm[3])
{
    double a_mm[3], along[3];
    lr_scanner_hit_centre(scanner, event->crystals[0], a_mm);
    lr_scanner_hit_centre(scanner, event->crystals[1], along);
    vec_sub(along, a_mm, along);
    const double length_mm = vec_length(along);
    const double share = length_mm > 0 ? 0.5 + event->tof_mm / length_mm : 0.5;
    vec_add_scaled(a_mm, share, along, centre_mm);
}

static lr_status put_event(struct lr_events_tsv *tsv, const lr_event *event)
{
    const lr_events_info *info = tsv->params.info;
    const bool has_tof = info != NULL && lr_events_info_has_tof(info, event->crystals);
    double centre_mm[3] = {NAN, NAN, NAN};
    char line[256];
    if (has_tof) find_centre(tsv->params.lors->scanner, event, centre_mm);
    const int length =
        snprintf(line, sizeof(line), "%u\t%d\t%.9g\t%d\t%d\t%.9g\t%.9g\t%.9g\t%.9g\n", (unsigned)event->time_ms,
                 event->is_delayed ? 1 : 0, event->weight, (int)event->crystals[0], (int)event->crystals[1],
                 has_tof ? event->tof_mm : NAN, centre_mm[0], centre_mm[1], centre_mm[2]);
    return lr_output_write(&tsv->output, line, (size_t)length);
}

struct lr_events_tsv *lr_events_tsv_create(const lr_events_writer_params *params)
{
    struct lr_events_tsv *tsv = lr_alloc(1, sizeof(*tsv), "a writer", params->log);
    if (tsv == NULL) return NULL;
    tsv->params = *params;
    if (lr_output_open(&tsv->output, params->path, params->log) != LR_OK) {
        free(tsv);
        return NULL;
    }
    (void)lr_output_write(&tsv->output, header, strlen(header)); /* finish reports a failure */
    return tsv;
}

lr_status lr_events_tsv_take(void *user, const lr_event *events, int64_t count)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < count; k++) status = put_event(user, &events[k]);
    lr_c_locale_leave(locale);
    return status;
}

lr_status lr_events_tsv_finish(struct lr_events_tsv *tsv)
{
    const lr_status status = lr_output_finish(&tsv->output);
    free(tsv);
    return status;
}

void lr_events_tsv_abandon(struct lr_events_tsv *tsv)
{
    lr_output_abandon(&tsv->output);
    free(tsv);
}
