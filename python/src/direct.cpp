/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

#include <cstring>

/* Returns the views, as (azimuth, tilt) in degrees, that divide half a turn and the acceptance evenly. */
static nb::object view_set(int azimuths, int tilts, double acceptance_deg)
{
    Calls calls;
    const lr_view_set wanted = {azimuths, tilts, acceptance_deg};
    lr_view_set set;
    calls.run([&] { return lr_view_set_complete(&wanted, &set, &calls.log); });
    std::vector<double> angles;
    for (int k = 0; k < lr_view_set_count(&set); k++) {
        const lr_view view = lr_view_set_at(&set, k);
        angles.insert(angles.end(), {view.azimuth_deg, view.tilt_deg});
    }
    const size_t num = angles.size() / 2;
    return numpy_array(std::move(angles), {num, 2});
}

static Operator direct(const GridTuple &grid_given, nb::handle angles, nb::dict options)
{
    auto engine = std::make_shared<Engine>();
    const lr_grid grid = grid_of(grid_given);
    const auto rows = rows_of<double>(angles, "views", 2);
    std::vector<lr_view> views(rows.shape(0));
    for (size_t k = 0; k < views.size(); k++) views[k] = {rows.data()[2 * k], rows.data()[2 * k + 1]};
    const auto backend = nb::cast<std::string>(options["backend"]);
    const nb::object histo = options["factors"];
    if (!histo.is_none()) {
        engine->factors = std::make_unique<Factors>();
        Factors &factors = *engine->factors;
        Shape shape = image_shape(grid);
        shape.insert(shape.begin(), (int64_t)views.size());
        const Array given(histo, {"factors", &shape});
        factors.efficiencies.assign(given.floats(), given.floats() + given.count());
        factors.lors.count = given.count();
        factors.lors.values = factors.efficiencies.data();
        factors.source = lr_lor_data_source(&factors.lors);
    }
    lr_direct_params params = {};
    params.grid = &grid;
    params.views = views.data();
    params.num_views = (int)views.size();
    params.kernel.resolution.tof_ps = nb::cast<double>(options["tof_ps"]);
    params.kernel.resolution.radial_mm = nb::cast<double>(options["radial_mm"]);
    params.kernel.resolution.axial_mm = nb::cast<double>(options["axial_mm"]);
    params.kernel.resolution.radial_edge_mm = nb::cast<double>(options["radial_edge_mm"]);
    params.kernel.resolution.edge_mm = nb::cast<double>(options["edge_mm"]);
    if (params.kernel.resolution.radial_edge_mm > 0) params.kernel.resolution.model = LR_RADIAL_LINEAR;
    params.backend = backend.c_str();
    params.threads = nb::cast<int>(options["threads"]);
    params.device = nb::cast<int>(options["device"]);
    params.max_memory_bytes = nb::cast<int64_t>(options["max_memory_bytes"]);
    params.factors = engine->factors != nullptr ? &engine->factors->source : nullptr;
    params.log = &engine->calls.log;
    params.progress = &engine->calls.progress;
    engine->opened(engine->calls.make([&] { return lr_direct_create(&params); }, options["progress"]));
    Operator made;
    made.data = engine->data;
    made.engine = std::move(engine);
    return made;
}

/* Deposits events in histo-images [views][nz][ny][nx] of a set of views. */
static nb::object deposit(const ListMode &list, const GridTuple &grid_given, std::array<int, 2> set,
                          double acceptance_deg, bool is_trilinear)
{
    Calls calls;
    const lr_grid grid = grid_of(grid_given);
    lr_deposit_params params = {};
    params.scanner = list.lors->scanner.get();
    params.grid = &grid;
    params.set = {set[0], set[1], acceptance_deg};
    params.rule = is_trilinear ? LR_DEPOSIT_TRILINEAR : LR_DEPOSIT_NEAREST;
    params.info = &list.info;
    params.log = &calls.log;
    std::unique_ptr<lr_deposit, void (*)(lr_deposit *)> made(calls.make([&] { return lr_deposit_create(&params); }),
                                                             lr_deposit_destroy);
    const lr_event_sink sink = lr_deposit_sink(made.get());
    calls.run([&] {
        const lr_status status = sink.take(sink.user, list.events.data(), (int64_t)list.events.size());
        return status == LR_OK ? lr_deposit_finish(made.get()) : status;
    });
    const lr_histo_images *histo = lr_deposit_get_images(made.get());
    const size_t num_views = (size_t)histo->num_views, nx = (size_t)grid.size[0], ny = (size_t)grid.size[1],
                 nz = (size_t)grid.size[2];
    std::vector<float> values(histo->values, histo->values + num_views * nx * ny * nz);
    return numpy_array(std::move(values), {num_views, nz, ny, nx});
}

void bind_direct(nb::module_ &m)
{
    m.def("view_set", &view_set, "azimuths"_a, "tilts"_a, "acceptance_deg"_a);
    m.def("direct", &direct, "grid"_a, "views"_a, "options"_a);
    m.def("deposit", &deposit, "events"_a, "grid"_a, "set"_a, "acceptance_deg"_a, "trilinear"_a);
}
