/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

#include <cstring>

lr_grid grid_of(const GridTuple &tuple)
{
    const auto &[size, voxel_mm, origin_mm] = tuple;
    lr_grid grid = lr_grid_centred(size.data(), voxel_mm.data());
    if (origin_mm) std::copy(origin_mm->begin(), origin_mm->end(), grid.origin_mm);
    return grid;
}

Shape image_shape(const lr_grid &grid)
{
    return {grid.size[2], grid.size[1], grid.size[0]};
}

Engine::~Engine()
{
    nb::gil_scoped_release unlocked; /* this may wait until a device has finished */
    lr_operator_destroy(op);
}

lr_traffic Engine::traffic() const
{
    lr_traffic sum = places.traffic();
    const lr_place *place = lr_operator_place(op);
    if (place == nullptr) return sum;
    const lr_traffic own = lr_place_get_info(place).traffic;
    sum.to_device += own.to_device;
    sum.to_host += own.to_host;
    return sum;
}

SensitivityHold::SensitivityHold(Engine &engine) : held(engine.sensitivity_of.get())
{
    if (held == nullptr) return;
    alone = held->calls.hold();
    lr_operator_listen(held->op, &engine.calls.log, &engine.calls.progress);
}

SensitivityHold::~SensitivityHold()
{
    if (held != nullptr) lr_operator_listen(held->op, &held->calls.log, &held->calls.progress);
}

void Engine::opened(lr_operator *made)
{
    op = made;
    info = lr_operator_get_info(op);
    image = image_shape(*info->grid);
    const lr_direct_info *direct = lr_direct_get_info(op);
    data = {info->num_lors};
    if (direct != nullptr) {
        data = image;
        data.insert(data.begin(), direct->num_views);
    }
    takes_doubles = strcmp(info->backend, "cpu") == 0;
    takes_cuda = info->is_gpu || strcmp(info->backend, "cuda") == 0;
}

lr_selection Operator::selection() const
{
    lr_selection selection = {};
    if (!lors.empty()) {
        selection.lors = lors.data();
        selection.num_lors = (int64_t)lors.size();
    } else if (is_part) {
        selection.pairs = pairs.data();
        selection.num_pairs = (int64_t)pairs.size();
    }
    return selection;
}

/* An image in Python's memory, and its grid, which need not be the operator's. */
using ImageTuple = std::tuple<nb::object, GridTuple>;

static Array image_array(const ImageTuple &given, const char *name, lr_image *image)
{
    image->grid = grid_of(std::get<1>(given));
    const Shape shape = image_shape(image->grid);
    Array array(std::get<0>(given), {name, &shape});
    image->values = const_cast<float *>(array.floats());
    return array;
}

/* Makes the factors of LORs: the efficiencies of crystals or LORs, times the attenuation along each LOR. */
static std::unique_ptr<Factors> make_factors(Engine &engine, nb::dict options)
{
    const nb::object efficiencies = options["efficiencies"];
    const auto attenuation = nb::cast<std::optional<ImageTuple>>(options["attenuation"]);
    auto factors = std::make_unique<Factors>();
    const lr_lors *lors = engine.lors->lors;
    const auto add = [&](lr_lor_source source) { factors->product.sources[factors->product.num_sources++] = source; };
    if (!efficiencies.is_none()) {
        const auto given = rows_of<float>(efficiencies, "efficiencies", 0);
        const int num_crystals = lors->scanner->num_crystals;
        const int64_t num_lors = engine.share != nullptr ? engine.share->num_all : lors->count;
        if ((int64_t)given.size() != num_crystals && (int64_t)given.size() != num_lors)
            throw nb::value_error(("efficiencies has " + std::to_string(given.size()) +
                                   " numbers: give one for each of " + std::to_string(num_crystals) + " crystals or " +
                                   std::to_string(num_lors) + " LORs")
                                      .c_str());
        const bool is_of_crystals = (int64_t)given.size() == num_crystals;
        const char *name = is_of_crystals ? "efficiencies of crystals" : "efficiencies of LORs";
        engine.calls.run([&] {
            return lr_efficiencies_check(given.data(), (int64_t)given.size(), name, &engine.calls.log);
        });
        if (is_of_crystals || engine.share == nullptr)
            factors->efficiencies.assign(given.data(), given.data() + given.size());
        else
            for (const int64_t lor : engine.share->lors) factors->efficiencies.push_back(given.data()[lor]);
        if (is_of_crystals) {
            factors->crystals.lors = lors;
            factors->crystals.values = factors->efficiencies.data();
            factors->crystals.scale = 1;
            factors->crystals.log = &engine.calls.log;
            add(lr_crystal_product_source(&factors->crystals));
        } else {
            factors->lors.count = lors->count;
            factors->lors.values = factors->efficiencies.data();
            add(lr_lor_data_source(&factors->lors));
        }
    }
    if (attenuation) {
        lr_image mu = {};
        const Array held = image_array(*attenuation, "attenuation", &mu);
        lr_mu_map_params map = {};
        map.unit = LR_MU_PER_MM; /* values are already in this unit */
        map.name = "attenuation";
        map.scanner = lors->scanner;
        map.log = &engine.calls.log;
        engine.calls.run([&] { return lr_mu_map_settle(&mu, &map); });
        lr_attenuation_params params = {};
        params.lors = lors;
        params.mu = &mu;
        params.log = &engine.calls.log;
        factors->attenuation = engine.calls.make([&] { return lr_attenuation_create(&params); });
        add(lr_attenuation_source(factors->attenuation));
    }
    if (factors->product.num_sources == 0) return nullptr;
    factors->product.log = &engine.calls.log;
    factors->source = lr_source_product_source(&factors->product);
    return factors;
}

static Operator operator_of(std::shared_ptr<Engine> engine, std::array<double, 3> psf_mm)
{
    if (psf_mm[0] != 0 || psf_mm[1] != 0 || psf_mm[2] != 0)
        engine->calls.run([&] { return lr_operator_set_psf(engine->op, psf_mm.data()); });
    Operator made;
    made.data = engine->data;
    made.engine = std::move(engine);
    return made;
}

/* Returns the index of a name in a list of allowed names. throws: ValueError for another name. */
static int chosen(const char *argument, const std::string &name, std::initializer_list<const char *> names)
{
    std::string all;
    int number = 0;
    for (const char *one : names) {
        if (name == one) return number;
        all += std::string(number > 0 ? ", " : "") + "'" + one + "'";
        number++;
    }
    throw nb::value_error((std::string(argument) + " is '" + name + "': write one of " + all).c_str());
}

/* Returns the rank and the number of ranks from the option "part". */
static std::array<int, 2> part_of(nb::dict options)
{
    const auto part = nb::cast<std::array<int, 2>>(options["part"]);
    if (part[1] < 1 || part[0] < 0 || part[0] >= part[1])
        throw nb::value_error(("there is no part " + std::to_string(part[0]) + " of " + std::to_string(part[1]) +
                               ": write part=(rank, ranks), and count ranks from 0")
                                  .c_str());
    return part;
}

/* Restricts the operator to the LORs of one rank. Each of the subsets is divided evenly among the ranks. */
static void take_share(Engine &engine, std::array<int, 2> part, int subsets)
{
    const lr_lors *all = engine.lors->lors;
    auto share = std::make_unique<Share>();
    auto own = std::make_shared<Lors>();
    own->scanner = engine.lors->scanner;
    share->subsets = subsets;
    share->num_all = all->count;
    engine.calls.run([&] {
        const lr_log *log = &engine.calls.log;
        const size_t num_pairs = (size_t)all->num_pairs;
        std::vector<int32_t> group_of(num_pairs), rank_of(num_pairs), pairs;
        lr_partition_params deal = {};
        lr_status status = lr_osem_interleave(all, subsets, &share->interleave, log);
        if (status == LR_OK) {
            deal.lors = all;
            deal.ranks = part[1];
            deal.subsets = subsets / share->interleave;
            deal.subset_of = group_of.data();
            deal.log = log;
            status = lr_osem_subsets(all, deal.subsets, group_of.data(), log);
        }
        if (status == LR_OK) status = lr_partition(&deal, rank_of.data());
        if (status != LR_OK) return status;
        for (size_t pair = 0; pair < num_pairs; pair++) {
            if (rank_of[pair] != part[0]) continue;
            pairs.push_back((int32_t)pair);
            share->group_of.push_back(group_of[pair]);
            for (int64_t lor = all->offsets[pair]; lor < all->offsets[pair + 1]; lor++) share->lors.push_back(lor);
        }
        lr_selection selection = {};
        selection.pairs = pairs.data();
        selection.num_pairs = (int64_t)pairs.size();
        own->lors = lr_lors_create_part(all, &selection, log);
        return own->lors != nullptr ? LR_OK : LR_FAILED;
    });
    engine.lors = std::move(own);
    engine.share = std::move(share);
}

static Operator correspondence(Scanner &scanner, const GridTuple &grid_given, nb::dict options)
{
    auto engine = std::make_shared<Engine>();
    engine->lors = scanner.list_lors();
    const auto part = part_of(options);
    if (part[1] > 1) take_share(*engine, part, nb::cast<int>(options["subsets"]));
    const lr_grid grid = grid_of(grid_given);
    const auto backend = nb::cast<std::string>(options["backend"]);
    engine->factors = make_factors(*engine, options);
    lr_operator_params params = {};
    params.lors = engine->lors->lors;
    params.grid = &grid;
    params.backend = backend.c_str();
    params.mode = (lr_mode)chosen("mode", nb::cast<std::string>(options["mode"]), {"auto", "sampled", "exact"});
    params.rays = nb::cast<int>(options["rays"]);
    const auto samples = nb::cast<std::array<int, 3>>(options["samples"]);
    std::copy(samples.begin(), samples.end(), params.samples);
    params.factors = engine->factors != nullptr ? &engine->factors->source : nullptr;
    params.deterministic = nb::cast<bool>(options["deterministic"]);
    params.penetration = nb::cast<bool>(options["penetration"]);
    params.layers_alone = nb::cast<bool>(options["layers_alone"]);
    const nb::object store = options["store"];
    params.store = store.is_none() ? LR_STORE_AUTO : nb::cast<bool>(store) ? LR_STORE_YES : LR_STORE_NO;
    params.projections = nb::cast<double>(options["projections"]);
    params.max_memory_bytes = nb::cast<int64_t>(options["max_memory_bytes"]);
    params.threads = nb::cast<int>(options["threads"]);
    params.device = nb::cast<int>(options["device"]);
    params.log = &engine->calls.log;
    params.progress = &engine->calls.progress;
    engine->opened(engine->calls.make([&] { return lr_operator_create(&params); }, options["progress"]));
    return operator_of(std::move(engine), nb::cast<std::array<double, 3>>(options["psf_mm"]));
}

/* Options that operators of events and of lines have in common. The name of the backend, and the factors of rows, live
 * as long as `options`. */
struct ListOptions {
    std::string backend;
    Array factors;
    lr_listmode_params params = {};

    ListOptions(Engine &engine, nb::dict options, const lr_grid *grid, int64_t count)
    {
        backend = nb::cast<std::string>(options["backend"]);
        params.grid = grid;
        params.num_ranges = nb::cast<int>(options["ranges"]);
        params.kernel =
            (lr_listmode_kernel)chosen("kernel", nb::cast<std::string>(options["kernel"]), {"tube", "line", "exact"});
        params.tube.width_mm = nb::cast<double>(options["tube_width_mm"]);
        params.tube.fwhm_mm = nb::cast<double>(options["tube_fwhm_mm"]);
        if (!options["factors"].is_none()) {
            const Shape shape = {count};
            factors = Array(options["factors"], {"factors", &shape});
            params.event_factors = factors.floats();
        }
        if (!options["sensitivity_of"].is_none()) {
            engine.sensitivity_of = nb::cast<Operator &>(options["sensitivity_of"]).engine;
            if (engine.sensitivity_of->sensitivity_of != nullptr)
                engine.sensitivity_of = engine.sensitivity_of->sensitivity_of;
            params.sensitivity_of = engine.sensitivity_of->op;
        }
        params.backend = backend.c_str();
        params.max_memory_bytes = nb::cast<int64_t>(options["max_memory_bytes"]);
        params.threads = nb::cast<int>(options["threads"]);
        params.device = nb::cast<int>(options["device"]);
        params.log = &engine.calls.log;
        params.progress = &engine.calls.progress;
    }
};

static Operator of_events(std::shared_ptr<ListMode> events, const GridTuple &grid_given, nb::dict options)
{
    auto engine = std::make_shared<Engine>();
    engine->lors = events->lors;
    engine->events = events;
    const lr_grid grid = grid_of(grid_given);
    engine->factors = make_factors(*engine, options);
    ListOptions list(*engine, options, &grid, (int64_t)events->events.size());
    list.params.lors = engine->lors->lors;
    list.params.events = events->events.data();
    list.params.count = (int64_t)events->events.size();
    list.params.info = &events->info;
    const auto samples = nb::cast<std::array<int, 3>>(options["samples"]);
    std::copy(samples.begin(), samples.end(), list.params.samples);
    list.params.factors = engine->factors != nullptr ? &engine->factors->source : nullptr;
    list.params.sensitivity_lines = nb::cast<int64_t>(options["sensitivity_lines"]);
    list.params.no_solid_angles = !nb::cast<bool>(options["solid_angles"]);
    list.params.seed = nb::cast<uint64_t>(options["seed"]);
    const auto part = part_of(options);
    if (part[1] > 1) {
        list.params.sensitivity_part = part[0];
        list.params.sensitivity_parts = part[1];
    }
    engine->opened(engine->calls.make([&] { return lr_listmode_create(&list.params); }, options["progress"]));
    return operator_of(std::move(engine), nb::cast<std::array<double, 3>>(options["psf_mm"]));
}

static Operator of_lines(nb::handle start, nb::handle end, nb::handle tof_mm, const GridTuple &grid_given,
                         nb::dict options)
{
    auto engine = std::make_shared<Engine>();
    const lr_grid grid = grid_of(grid_given);
    const Shape any = {-1, 3};
    Array starts(start, {"start", &any, true, false, true}), ends, times, resolutions;
    const int64_t count = starts.count() / 3;
    const Shape same = {count, 3}, numbers = {count};
    ends = Array(end, {"end", &same, true, false, true});
    if (!tof_mm.is_none()) times = Array(tof_mm, {"tof_mm", &numbers, true, false, true});
    const nb::handle own_ps = options["tof_resolutions_ps"];
    if (!own_ps.is_none()) resolutions = Array(own_ps, {"tof_resolution_ps", &numbers, true, false, true});
    ListOptions list(*engine, options, &grid, count);
    lr_vector start_mm, end_mm, centre_mm, each_ps;
    lr_lines lines = {};
    lines.tof_resolution_ps = nb::cast<double>(options["tof_resolution_ps"]);
    lines.tof_bin_mm = nb::cast<double>(options["tof_bin_mm"]);
    list.params.lines = &lines;
    lr_operator *made = nullptr;
    engine->calls.run(
        [&] {
            const lr_log *log = &engine->calls.log;
            lr_status status = starts.vector(&engine->places, log, &start_mm);
            if (status == LR_OK) status = ends.vector(&engine->places, log, &end_mm);
            if (status == LR_OK) status = times.vector(&engine->places, log, &centre_mm);
            if (status == LR_OK) status = resolutions.vector(&engine->places, log, &each_ps);
            if (status == LR_OK) {
                lines.start_mm = &start_mm;
                lines.end_mm = &end_mm;
                lines.tof_mm = times.count() > 0 ? &centre_mm : nullptr;
                lines.tof_resolutions_ps = resolutions.count() > 0 ? &each_ps : nullptr;
                made = lr_listmode_create(&list.params);
                if (made == nullptr) status = LR_FAILED;
            }
            starts.unwrap();
            ends.unwrap();
            times.unwrap();
            resolutions.unwrap();
            return status;
        },
        options["progress"]);
    engine->opened(made);
    return operator_of(std::move(engine), nb::cast<std::array<double, 3>>(options["psf_mm"]));
}

/* Makes vectors from two arrays, and calls a projection of the library with them. */
template <class Project> static void project(Operator &op, Array &from, Array &to, nb::handle listener, Project work)
{
    Engine &engine = *op.engine;
    engine.calls.run(
        [&] {
            const SensitivityHold held(engine);
            lr_vector in, out;
            lr_status status = from.vector(&engine.places, &engine.calls.log, &in);
            if (status == LR_OK) status = to.vector(&engine.places, &engine.calls.log, &out);
            if (status == LR_OK) {
                const lr_selection selection = op.selection();
                status = work(engine.op, op.is_part ? &selection : nullptr, &in, &out);
            }
            if (status == LR_OK) status = from.finish();
            if (status == LR_OK) status = to.finish();
            from.unwrap();
            to.unwrap();
            return status;
        },
        listener);
}

static void forward(Operator &op, nb::handle x, nb::handle out, nb::handle listener)
{
    const Engine &engine = *op.engine;
    Array image(x, {"x", &engine.image, engine.takes_doubles, false, engine.takes_cuda, &op.data,
                    "these are data: write A.T @ x"});
    Array values(out, {"out", &op.data, engine.takes_doubles, true, engine.takes_cuda});
    project(op, image, values, listener, lr_operator_forward);
}

static void adjoint(Operator &op, nb::handle y, nb::handle out, nb::handle listener)
{
    const Engine &engine = *op.engine;
    Array values(y, {"y", &op.data, engine.takes_doubles, false, engine.takes_cuda, &engine.image,
                     "this is an image: write A @ y"});
    Array image(out, {"out", &engine.image, engine.takes_doubles, true, engine.takes_cuda});
    project(op, values, image, listener, lr_operator_back);
}

static void sensitivity(Operator &op, nb::handle out, nb::handle listener)
{
    Engine &engine = *op.engine;
    Array image(out, {"out", &engine.image, engine.takes_doubles, true, engine.takes_cuda});
    Array nothing;
    project(op, nothing, image, listener,
            [](lr_operator *one, const lr_selection *part, const lr_vector *, lr_vector *to) {
                return lr_operator_sensitivity(one, part, to);
            });
}

static Operator subset(const Operator &op, int number, int count)
{
    if (op.is_part) throw nb::value_error("a subset has no subsets: take them of the whole operator");
    if (count < 1 || number < 0 || number >= count)
        throw nb::value_error(
            ("there is no subset " + std::to_string(number) + " of " + std::to_string(count) + ": count from 0")
                .c_str());
    Engine &engine = *op.engine;
    const lr_lors *lors = engine.info->lors;
    Operator part;
    part.engine = op.engine;
    part.is_part = true;
    int interleave = 1;
    engine.calls.run([&] {
        std::vector<int32_t> group_of((size_t)lors->num_pairs);
        lr_status status = lr_osem_interleave(lors, count, &interleave, &engine.calls.log);
        if (status == LR_OK) status = lr_osem_subsets(lors, count / interleave, group_of.data(), &engine.calls.log);
        if (status != LR_OK) return status;
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
            if (group_of[(size_t)pair] != number / interleave) continue;
            part.pairs.push_back((int32_t)pair);
            if (interleave == 1) continue;
            for (int64_t lor = lors->offsets[pair]; lor < lors->offsets[pair + 1]; lor++)
                if (lr_lors_turn(lors, lor, interleave) == number % interleave) part.lors.push_back(lor);
        }
        return LR_OK;
    });
    part.data = op.data;
    const lr_selection selection = part.selection();
    part.data[0] =
        lr_direct_get_info(engine.op) != nullptr ? selection.num_pairs : lr_selection_count(lors, &selection);
    return part;
}

/* Returns the indices of a subset's data, along the first axis of all data. */
static nb::object indices(const Operator &op)
{
    const lr_lors *lors = op.engine->info->lors;
    std::vector<int64_t> numbers;
    if (!op.is_part) {
        numbers.resize((size_t)op.data[0]);
        for (size_t k = 0; k < numbers.size(); k++) numbers[k] = (int64_t)k;
    } else if (!op.lors.empty()) {
        numbers = op.lors;
    } else if (lr_direct_get_info(op.engine->op) != nullptr) {
        numbers.assign(op.pairs.begin(), op.pairs.end());
    } else {
        for (const int32_t pair : op.pairs)
            for (int64_t lor = lors->offsets[pair]; lor < lors->offsets[pair + 1]; lor++) numbers.push_back(lor);
    }
    if (op.engine->share != nullptr)
        for (int64_t &number : numbers) number = op.engine->share->lors[(size_t)number];
    const size_t num = numbers.size();
    return numpy_array(std::move(numbers), {num});
}

/* --- elements --- */

template <class Value> struct Rows {
    Calls *calls;
    std::vector<int64_t> starts{0}, columns;
    std::vector<Value> values;

    explicit Rows(Calls *calls) : calls(calls) {}

    static lr_status take(void *user, const lr_row *row)
    {
        Rows *rows = static_cast<Rows *>(user);
        try {
            rows->columns.insert(rows->columns.end(), row->lor, row->lor + row->count);
            rows->values.insert(rows->values.end(), row->probability, row->probability + row->count);
            rows->starts.push_back((int64_t)rows->columns.size());
        } catch (const std::bad_alloc &) {
            rows->calls->keep_exception();
            return LR_FAILED;
        }
        return LR_OK;
    }
};

/* Returns values, columns and starts of rows, in the form of SciPy's csr_array. */
static nb::tuple csr(Operator &op, nb::handle numbers, nb::handle listener)
{
    Rows<float> rows(&op.engine->calls);
    lr_selection selection = op.selection();
    std::vector<int64_t> list;
    if (!numbers.is_none()) {
        const auto given = rows_of<int64_t>(numbers, "rows", 0);
        list.assign(given.data(), given.data() + given.size());
        selection = {};
        selection.lors = list.data();
        selection.num_lors = (int64_t)list.size();
    }
    const bool is_all = numbers.is_none() && !op.is_part;
    const lr_row_sink sink = {Rows<float>::take, &rows};
    if (is_all || selection.num_lors > 0 || selection.num_pairs > 0)
        op.engine->calls.run([&] { return lr_operator_lor_rows(op.engine->op, is_all ? nullptr : &selection, &sink); },
                             listener);
    const size_t num = rows.values.size(), num_starts = rows.starts.size();
    return nb::make_tuple(numpy_array(std::move(rows.values), {num}), numpy_array(std::move(rows.columns), {num}),
                          numpy_array(std::move(rows.starts), {num_starts}));
}

/* Returns the LORs and elements of the rows of voxels begin .. end - 1, and where each row begins. */
static nb::tuple voxel_rows(Operator &op, int64_t begin, int64_t end)
{
    Rows<double> rows(&op.engine->calls);
    const lr_row_sink sink = {Rows<double>::take, &rows};
    lr_row_choice choice = {};
    const lr_selection selection = op.selection();
    choice.begin = begin;
    choice.end = end;
    choice.part = op.is_part ? &selection : nullptr;
    op.engine->calls.run([&] { return lr_operator_rows_part(op.engine->op, &choice, &sink); });
    const size_t num = rows.values.size(), num_starts = rows.starts.size();
    return nb::make_tuple(numpy_array(std::move(rows.values), {num}), numpy_array(std::move(rows.columns), {num}),
                          numpy_array(std::move(rows.starts), {num_starts}));
}

static nb::dict info(const Operator &op)
{
    const lr_operator_info *info = op.engine->info;
    static const char *const modes[] = {"auto", "sampled", "exact"};
    nb::dict facts;
    facts["backend"] = info->backend;
    facts["device"] = info->device;
    facts["is_gpu"] = info->is_gpu;
    facts["passed_over"] = info->passed_over;
    facts["mode"] = modes[info->mode];
    facts["penetration"] = info->penetration;
    facts["stored"] = info->stored;
    facts["num_voxels"] = info->num_voxels;
    facts["num_lors"] = info->num_lors;
    facts["of_events"] = info->of_events;
    facts["num_elements"] = info->num_elements;
    facts["memory_bytes"] = info->memory_bytes;
    facts["rays"] = info->rays;
    facts["samples"] = nb::make_tuple(info->samples[0], info->samples[1], info->samples[2]);
    facts["threads"] = info->threads;
    const lr_traffic traffic = op.engine->traffic();
    facts["to_device_bytes"] = traffic.to_device;
    facts["to_host_bytes"] = traffic.to_host;
    facts["build_seconds"] = info->build_seconds;
    return facts;
}

static nb::object tuple_of(const Shape &shape)
{
    nb::list list;
    for (const int64_t n : shape) list.append(n);
    return nb::tuple(list);
}

void bind_operator(nb::module_ &m)
{
    nb::class_<Operator>(m, "Operator")
        .def_static("correspondence", &correspondence, "scanner"_a, "grid"_a, "options"_a)
        .def_static("of_events", &of_events, "events"_a, "grid"_a, "options"_a)
        .def_static("of_lines", &of_lines, "start"_a, "end"_a, "tof_mm"_a.none(), "grid"_a, "options"_a)
        .def("forward", &forward, "x"_a.none(), "out"_a.none(), "listener"_a.none())
        .def("adjoint", &adjoint, "y"_a.none(), "out"_a.none(), "listener"_a.none())
        .def("sensitivity", &sensitivity, "out"_a.none(), "listener"_a.none())
        .def("subset", &subset, "number"_a, "count"_a)
        .def("indices", &indices)
        .def("csr", &csr, "rows"_a.none(), "listener"_a.none())
        .def("voxel_rows", &voxel_rows, "begin"_a, "end"_a)
        .def_prop_ro(
            "image_shape", [](const Operator &op) { return tuple_of(op.engine->image); })
        .def_prop_ro(
            "data_shape", [](const Operator &op) { return tuple_of(op.data); })
        .def_prop_ro("info", &info);
}
