/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The writer of events as tab-separated text, for people and scripts. */
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/events/event_stream.h"
#include "io/files/number_type.h"
#include "io/files/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    struct lr_output output;
    lr_events_writer_params params; /* the pointers belong to the caller */
};

static const char tsv_header[] = "time_ms\tdelayed\tweight\tcrystal_a\tcrystal_b\ttof_mm\tx_mm\ty_mm\tz_mm\n";

static lr_status take(void *user, const lr_event *events, int64_t count)
{
    struct writer *writer = user;
    const lr_scanner *scanner = writer->params.lors->scanner;
    const lr_events_info *info = writer->params.info;
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const lr_event *event = &events[k];
        const bool has_tof = info != NULL && lr_events_info_has_tof(info, event->crystals);
        double centre_mm[3] = {NAN, NAN, NAN};
        if (has_tof) {
            /* The position of the annihilation according to the time of flight. */
            double a_mm[3], along[3];
            lr_scanner_hit_centre(scanner, event->crystals[0], a_mm);
            lr_scanner_hit_centre(scanner, event->crystals[1], along);
            vec_sub(along, a_mm, along);
            const double length_mm = vec_length(along);
            const double share = length_mm > 0 ? 0.5 + event->tof_mm / length_mm : 0.5;
            vec_add_scaled(a_mm, share, along, centre_mm);
        }

        char line[256];
        const int length =
            snprintf(line, sizeof(line), "%u\t%d\t%.9g\t%d\t%d\t%.9g\t%.9g\t%.9g\t%.9g\n", (unsigned)event->time_ms,
                     event->is_delayed ? 1 : 0, event->weight, (int)event->crystals[0], (int)event->crystals[1],
                     has_tof ? event->tof_mm : NAN, centre_mm[0], centre_mm[1], centre_mm[2]);
        status = lr_output_write(&writer->output, line, (size_t)length);
    }
    lr_c_locale_leave(locale);
    return status;
}

static void *create(const lr_events_writer_params *params)
{
    struct writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL || lr_output_open(&writer->output, params->path, params->log) != LR_OK) {
        free(writer);
        return NULL;
    }
    writer->params = *params;
    (void)lr_output_write(&writer->output, tsv_header, strlen(tsv_header)); /* a failure is reported by finish */
    return writer;
}

static lr_status finish(void *self)
{
    struct writer *writer = self;
    const lr_status status = lr_output_finish(&writer->output);
    free(writer);
    return status;
}

static void abandon(void *self)
{
    struct writer *writer = self;
    lr_output_abandon(&writer->output);
    free(writer);
}

static const struct lr_event_writing writing = {create, take, finish, abandon};
const struct lr_event_format lr_text_format = {"text", ".tsv", NULL, NULL, &writing};
