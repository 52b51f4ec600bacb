/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/driver.h"

#include "base/log.h"

#include <unistd.h>

lr_status lr_driver_claim(lr_driver_owner *owner, const char *driver, const lr_log *log)
{
    long none = 0;
    (void)atomic_compare_exchange_strong(owner, &none, (long)getpid());
    return lr_driver_check(owner, driver, log);
}

lr_status lr_driver_check(const lr_driver_owner *owner, const char *driver, const lr_log *log)
{
    if (lr_driver_is_own(owner)) return LR_OK;
    return lr_error(log, LR_NO_DEVICE,
                    "this process was forked from one that uses %s, whose threads it does not have: start processes "
                    "anew instead (Python: multiprocessing's \"spawn\"), or use backend native or cpu here",
                    driver);
}

bool lr_driver_is_own(const lr_driver_owner *owner)
{
    return atomic_load(owner) == (long)getpid();
}
