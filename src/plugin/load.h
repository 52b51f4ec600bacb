/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Plugins are looked for in the folder that LORASTER_PLUGINS names; where that is not set, beside the
 * library or program that asks, in the folder loraster/ there, in that of the libraries that were
 * installed with a program, and where they were to be installed (base/helper.h). */
#ifndef LR_PLUGIN_LOAD_H
#define LR_PLUGIN_LOAD_H

#include <lr/log.h>

/* What is asked of a plugin, and the words for those who lack it. */
struct lr_plugin_name {
    const char *file, *symbol;
    const char *what;     /* "OpenGL" */
    const char *packages; /* what may be missing */
};

/* The plugin's table; NULL, with a sentence of LR_NO_DEVICE, where there is none of this build. It is
 * never unloaded: drivers have threads. Any thread may ask, also for the first time. */
const void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log);

#endif
