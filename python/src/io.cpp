/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

#include <algorithm>

using Image = std::unique_ptr<lr_image, void (*)(lr_image *)>;

/* Returns an image's values, [nt][nz][ny][nx] if the file has several frames, its voxel_mm, and the centre of its voxel
 * (0, 0, 0). */
static nb::tuple read_image(const std::string &path)
{
    Calls calls;
    lr_grid grid = {};
    std::vector<float> values;
    const int num_frames = std::max(1, lr_image_num_frames(path.c_str(), nullptr));
    for (int frame = 1; frame <= num_frames; frame++) {
        const Image image(
            calls.make([&] { return lr_image_read_watched(path.c_str(), frame, &calls.progress, &calls.log); }),
            lr_image_destroy);
        grid = image->grid;
        values.insert(values.end(), image->values, image->values + lr_grid_num_voxels(&grid));
    }
    const size_t nx = (size_t)grid.size[0], ny = (size_t)grid.size[1], nz = (size_t)grid.size[2];
    const nb::object array = num_frames > 1 ? numpy_array(std::move(values), {(size_t)num_frames, nz, ny, nx})
                                            : numpy_array(std::move(values), {nz, ny, nx});
    return nb::make_tuple(array, nb::make_tuple(grid.voxel_mm[0], grid.voxel_mm[1], grid.voxel_mm[2]),
                          nb::make_tuple(grid.origin_mm[0], grid.origin_mm[1], grid.origin_mm[2]));
}

static void write_image(const std::string &path, nb::handle values, const GridTuple &grid_given)
{
    Calls calls;
    lr_image image = {};
    image.grid = grid_of(grid_given);
    const Shape shape = image_shape(image.grid);
    const Array array(values, {"image", &shape});
    image.values = const_cast<float *>(array.floats());
    calls.run([&] { return lr_image_write(path.c_str(), &image, &calls.log); });
}

static nb::object read_data(const std::string &path, Scanner &scanner)
{
    Calls calls;
    const lr_lors *lors = scanner.list_lors()->lors;
    std::unique_ptr<lr_lor_data, void (*)(lr_lor_data *)> data(
        calls.make([&] { return lr_lor_data_read_watched(path.c_str(), lors, &calls.progress, &calls.log); }),
        lr_lor_data_destroy);
    std::vector<float> values((size_t)lors->count);
    for (int64_t k = 0; k < data->count; k++)
        values[(size_t)(data->index != nullptr ? data->index[k] : k)] = data->values[k];
    return numpy_array(std::move(values), {(size_t)lors->count});
}

static void write_data(const std::string &path, nb::handle values, Scanner &scanner)
{
    Calls calls;
    const lr_lors *lors = scanner.list_lors()->lors;
    const Shape shape = {lors->count};
    const Array array(values, {"y", &shape});
    const lr_lor_data data = {lors->count, nullptr, const_cast<float *>(array.floats())};
    calls.run([&] { return lr_lor_data_write(path.c_str(), lors, &data, &calls.log); });
}

/* Writes events ordered by time, which the formats ask for. */
static void write_events(const std::string &path, const ListMode &list)
{
    Calls calls;
    std::vector<lr_event> events = list.events;
    std::stable_sort(events.begin(), events.end(),
                     [](const lr_event &a, const lr_event &b) { return a.time_ms < b.time_ms; });
    lr_events_writer_params params = {};
    params.path = path.c_str();
    params.lors = list.lors->lors;
    params.info = &list.info;
    params.log = &calls.log;
    calls.run([&] {
        lr_events_writer *writer = lr_events_writer_create(&params);
        if (writer == nullptr) return LR_FAILED;
        const lr_event_sink sink = lr_events_writer_sink(writer);
        const lr_status status = sink.take(sink.user, events.data(), (int64_t)events.size());
        if (status == LR_OK) return lr_events_writer_finish(writer);
        lr_events_writer_abandon(writer);
        return status;
    });
}

static void write_scanner(const std::string &path, const Scanner &scanner)
{
    Calls calls;
    calls.run([&] { return lr_scanner_write(path.c_str(), scanner.scanner.get(), &calls.log); });
}

static const char *file_kind(const std::string &path)
{
    static const char *const kinds[] = {"unknown", "scanner", "image", "data", "events", "petsird", "histo", "session"};
    return kinds[lr_file_kind_of(path.c_str())];
}

static nb::object phantom(const std::string &name, const GridTuple &grid_given, double radius_mm, double contrast)
{
    Calls calls;
    const lr_grid grid = grid_of(grid_given);
    lr_phantom_params params = {};
    params.name = name.c_str();
    params.radius_mm = radius_mm;
    params.contrast = contrast;
    params.log = &calls.log;
    params.progress = &calls.progress;
    const Image image(calls.make([&] { return lr_phantom_create(&params, &grid); }), lr_image_destroy);
    std::vector<float> values(image->values, image->values + lr_grid_num_voxels(&grid));
    return numpy_array(std::move(values), {(size_t)grid.size[2], (size_t)grid.size[1], (size_t)grid.size[0]});
}

static std::vector<std::string> phantoms()
{
    std::vector<std::string> names;
    for (const char *const *name = lr_phantom_names(); *name != nullptr; name++) names.push_back(*name);
    return names;
}

/* Replaces expected values by Poisson counts, in place. */
static void poisson(nb::handle values, uint64_t seed)
{
    Calls calls;
    nb::ndarray<float, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(values, array, false))
        throw nb::type_error("expected must be a float32 array in C order on the host: write "
                             "numpy.ascontiguousarray(expected, dtype=numpy.float32)");
    calls.run([&] { return lr_poisson(array.data(), (int64_t)array.size(), seed, &calls.log); });
}

void bind_io(nb::module_ &m)
{
    m.def("read_image", &read_image, "path"_a);
    m.def("write_image", &write_image, "path"_a, "values"_a, "grid"_a);
    m.def("read_data", &read_data, "path"_a, "scanner"_a);
    m.def("write_data", &write_data, "path"_a, "values"_a, "scanner"_a);
    m.def("write_events", &write_events, "path"_a, "events"_a);
    m.def("write_scanner", &write_scanner, "path"_a, "scanner"_a);
    m.def("file_kind", &file_kind, "path"_a);
    m.def("phantom", &phantom, "name"_a, "grid"_a, "radius_mm"_a, "contrast"_a);
    m.def("phantoms", &phantoms);
    m.def("poisson", &poisson, "values"_a, "seed"_a);
}
