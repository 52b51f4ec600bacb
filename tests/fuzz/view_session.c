/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer target: any bytes are a session or one sentence about bad input. Not part of CTest. */
#include "io/sessions/session.h"

#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct lr_view_session session;
    fuzz_status = LR_OK;
    const lr_status status =
        lr_view_session_parse("fuzz.yaml", (const char *)bytes, (int64_t)count, &session, &fuzz_log);
    if (status != fuzz_status || (status != LR_OK && status != LR_BAD_INPUT)) abort();
    if (status == LR_OK && session.num_ranges > LR_SESSION_RANGES) abort();
    lr_view_session_finish(&session);
    return 0;
}
