/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The formats behind lr_lor_data_read and lr_lor_data_write. */
#ifndef LR_IO_LOR_FORMATS_H
#define LR_IO_LOR_FORMATS_H

#include <lr/io.h>

/* Readers return checked data; writers get data that lr_lor_file_check has seen. */
lr_lor_data *lr_lor_hdf5_read(const char *path, const lr_lors *lors, const lr_log *log);
lr_status lr_lor_hdf5_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink, const lr_log *log);
lr_status lr_lor_hdf5_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

lr_lor_data *lr_lor_projdata_read(const char *path, const lr_lors *lors, const lr_log *log);
lr_status lr_lor_projdata_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

/* Refuses LORs out of range or order and values that are not finite, as readers do; `what` names the data in
 * sentences. errors: LR_BAD_INPUT. */
lr_status lr_lor_file_check(const char *what, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

/* The same for a piece of the data: `first` values precede it, and the last LOR among them is `before` (-1 = none). */
struct lr_lor_file_place {
    const char *what;
    int64_t first, before;
};
lr_status lr_lor_file_check_some(const struct lr_lor_file_place *place, const lr_lors *lors, const lr_lor_data *some,
                                 const lr_log *log);

#endif
