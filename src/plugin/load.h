/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where plugins are looked for: in the folder that LORASTER_PLUGINS names; where that is not set, beside
 * the library or program that asks, in the folder loraster/ there, in that of the libraries that were
 * installed with a program, and where they were to be installed. */
#ifndef LR_PLUGIN_LOAD_H
#define LR_PLUGIN_LOAD_H

#include <lr/log.h>

/* What is asked of a plugin, and the words for those who lack it. */
struct lr_plugin_name {
    const char *file, *symbol;
    const char *what;     /* "OpenGL" */
    const char *packages; /* what may be missing */
};

/* The address of the symbol; NULL, with a sentence of LR_NO_DEVICE. The plugin is never unloaded. */
void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log);

/* Whether a plugin of that version is this library's; else a sentence of LR_NO_DEVICE. */
bool lr_plugin_is_ours(const struct lr_plugin_name *name, const char *version, const lr_log *log);

#endif
