/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/tube_event.h"

#include "base/log.h"

static const lr_listmode_kernel kernels[] = {
    [TUBE_TUBE] = LR_LISTMODE_TUBE, [TUBE_LINE] = LR_LISTMODE_LINE, [TUBE_EXACT] = LR_LISTMODE_EXACT};

/* One event is not worth a device. */
static const char *backend_for(enum tube_kernel kernel)
{
    return kernel == TUBE_EXACT ? "auto" : "native"; /* where modules hide each other, cpu alone */
}

lr_status tube_event_row(const struct tube_event *event, lr_image *image, int *samples, const lr_log *log,
                         const lr_progress *progress)
{
    const struct tube_request *request = event->request;
    const lr_event line = {
        .crystals = {event->crystals[0], event->crystals[1]}, .tof_mm = (float)request->tof_mm, .weight = 1};
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = request->tof_ps};
    lr_listmode_params params = {.lors = event->study->lors,
                                 .grid = &event->study->grid,
                                 .events = &line,
                                 .count = 1,
                                 .info = request->has_tof ? &info : NULL,
                                 .kernel = kernels[request->kernel],
                                 .backend = backend_for(request->kernel),
                                 .log = log,
                                 .progress = progress};
    if (request->kernel == TUBE_EXACT && request->samples > 0)
        lr_grid_split_samples(&event->study->grid, request->samples, params.samples);
    LR_TRY(lr_progress_report(progress, "preparing the projector", 0, 1));
    lr_operator *op = lr_listmode_create(&params);
    if (op == NULL) return LR_FAILED;
    const int *points = lr_operator_get_info(op)->samples;
    float one = 1;
    const lr_vector value = lr_vector_of_floats(&one, 1);
    lr_vector row = lr_image_vector(image);
    *samples = points[0] * points[1] * points[2];
    const lr_status status = lr_operator_back(op, NULL, &value, &row);
    lr_operator_destroy(op);
    return status;
}
