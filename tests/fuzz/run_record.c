/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are the record of a run or one sentence about bad input. Not part of CTest. */
#include "io/sessions/run_record.h"

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    lr_status noted = LR_OK;
    const lr_log log = {fuzz_note, &noted};
    struct lr_run_record record;
    float values[5];
    const lr_status status = lr_run_record_parse("fuzz.json", (const char *)bytes, (int64_t)count, &record, &log);
    if (status != noted || (status != LR_OK && status != LR_BAD_INPUT)) abort();
    for (int k = 0; k < record.num_images; k++) {
        const struct lr_run_image *image = &record.images[k];
        for (int curve = 0; image->count > 0 && curve < LR_RUN_CURVES; curve++)
            lr_run_image_by_seconds(image, (enum lr_run_curve)curve, 5, values);
    }
    lr_run_record_finish(&record);
    return 0;
}
