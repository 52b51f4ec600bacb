/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_STIR_MAP_H
#define LR_IO_STIR_MAP_H

#include <lr/crystals.h>

/* A scanner from a crystal map, with what else is known of it in `given`: name, sizes (the map's
 * comments go before them), rules. Its crystals are ignored. */
lr_scanner *lr_stir_map_build(const char *path, const lr_crystal_list *given);

#endif
