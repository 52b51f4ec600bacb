/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The C locale for reading and writing files: numbers in files have a decimal point, also if the program's locale has
 * a comma. */
#ifndef LR_IO_C_LOCALE_H
#define LR_IO_C_LOCALE_H

#include <locale.h>

/* Saves the calling thread's locale. */
struct lr_c_locale {
    locale_t own, before;
};

/* Makes strtod and printf of this thread use the C locale until lr_c_locale_leave. If memory runs out, the thread keeps
 * its locale. */
static inline struct lr_c_locale lr_c_locale_enter(void)
{
    struct lr_c_locale locale = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (locale.own != (locale_t)0) locale.before = uselocale(locale.own);
    return locale;
}

static inline void lr_c_locale_leave(struct lr_c_locale locale)
{
    if (locale.own != (locale_t)0) {
        uselocale(locale.before);
        freelocale(locale.own);
    }
}

#endif
