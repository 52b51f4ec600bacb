/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files that are kept from one run to the next in $LORASTER_CACHE, or $XDG_CACHE_HOME/loraster, or
 * $HOME/.cache/loraster. With LORASTER_CACHE=off, or without any of these, nothing is kept. */
#ifndef LR_IO_NOTES_H
#define LR_IO_NOTES_H

#include <stdbool.h>
#include <stddef.h>

/* Gives the path of a file in the cache folder, and makes the folder. Returns false if nothing is kept. */
bool lr_notes_place(const char *name, char *path, size_t size);

#endif
