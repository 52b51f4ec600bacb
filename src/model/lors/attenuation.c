/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation as a factor per LOR: docs/method/common.md, "As a factor per LOR". */
#include <lr/factors.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/lors/mu_lines.h"
#include "model/lors/place.h"

#include <stdlib.h>

/* LORs that a worker takes at a time. */
enum { SHARE = 2048 };

struct lr_attenuation {
    const lr_lors *lors;
    int threads;
    struct lr_mu_lines mu;
    double (*faces)[3]; /* [num_crystals] face centres on the detection plane, box coordinates */
};

/* --- LORs --- */

struct loop {
    const lr_attenuation *self;
    const lr_lor_span *span;
    float *values;
};

static void fill_factors(void *user, int64_t begin, int64_t end, int worker)
{
    const struct loop *loop = user;
    const lr_attenuation *self = loop->self;
    struct lr_place place = {.lors = self->lors};
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        lr_place_seek(&place, lr_span_lor(loop->span, k));
        loop->values[k] = 0.0f;
        if (lr_place_in_coincidence(&place)) {
            loop->values[k] = (float)exp(-lr_mu_lines_integral(&self->mu, self->faces[place.first_i + place.a],
                                                               self->faces[place.first_j + place.b]));
        }
    }
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    const lr_attenuation *self = user;
    if (!lr_span_fits(self->lors, span)) return LR_USAGE;
    struct loop loop = {self, span, values};
    lr_parallel_for(self->threads, span->count, SHARE, fill_factors, &loop);
    return LR_OK;
}

lr_lor_source lr_attenuation_source(lr_attenuation *attenuation)
{
    return (lr_lor_source){get_factors, attenuation};
}

/* --- making --- */

/* Face centres of one module, in box coordinates. */
static void place_faces(lr_attenuation *self, int m)
{
    const lr_scanner *scanner = self->lors->scanner;
    const lr_module *module = &scanner->modules[m];
    double plane[3];
    lr_scanner_detection_centre(scanner, m, plane);
    for (int c = 0; c < scanner->first_crystal[m + 1] - scanner->first_crystal[m]; c++) {
        const int p = c % module->crystals[0], q = c / module->crystals[0];
        const double along_u = (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
        const double along_v = (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
        double face_mm[3];
        vec_add_scaled(plane, along_u, module->u, face_mm);
        vec_add_scaled(face_mm, along_v, module->v, face_mm);
        lr_mu_lines_place(&self->mu, face_mm, self->faces[scanner->first_crystal[m] + c]);
    }
}

static lr_status prepare(lr_attenuation *self, const lr_attenuation_params *params)
{
    const lr_scanner *scanner = params->lors->scanner;
    LR_TRY(lr_mu_lines_init(&self->mu, params->mu, params->log));
    self->faces = lr_alloc(scanner->num_crystals, sizeof(*self->faces), "the crystals' faces", params->log);
    if (self->faces == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) place_faces(self, m);
    return LR_OK;
}

lr_attenuation *lr_attenuation_create(const lr_attenuation_params *params)
{
    if (params->lors == NULL || params->mu == NULL || params->threads < 0) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "attenuation factors need LORs, a mu-map and a number of threads that is not "
                     "negative");
        return NULL;
    }
    lr_attenuation *self = lr_alloc(1, sizeof(*self), "attenuation factors", params->log);
    if (self == NULL) return NULL;
    self->lors = params->lors;
    self->threads = params->threads > 0 ? params->threads : lr_num_processors();
    if (prepare(self, params) != LR_OK) {
        lr_attenuation_destroy(self);
        return NULL;
    }
    return self;
}

void lr_attenuation_destroy(lr_attenuation *attenuation)
{
    if (attenuation != NULL) {
        lr_mu_lines_finish(&attenuation->mu);
        free(attenuation->faces);
        free(attenuation);
    }
}
