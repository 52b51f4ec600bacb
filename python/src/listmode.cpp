/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

static std::shared_ptr<ListMode> listmode_read(Scanner &scanner, const std::string &path,
                                               const std::optional<std::string> &companion, nb::handle listener)
{
    Calls calls;
    auto list = std::make_shared<ListMode>();
    list->lors = scanner.list_lors();
    lr_events_source source = {};
    source.path = path.c_str();
    source.companion = companion ? companion->c_str() : nullptr;
    source.scanner = scanner.scanner.get();
    source.log = &calls.log;
    source.progress = &calls.progress;
    struct Taker {
        ListMode *list;
        Calls *calls;
    } taker = {list.get(), &calls};
    lr_event_sink sink = {};
    sink.user = &taker;
    sink.take = [](void *user, const lr_event *events, int64_t count) {
        auto *to = static_cast<Taker *>(user);
        try {
            to->list->events.insert(to->list->events.end(), events, events + count);
        } catch (const std::bad_alloc &) {
            to->calls->keep_exception();
            return LR_FAILED;
        }
        return LR_OK;
    };
    calls.run([&] { return lr_events_read(&source, &sink, &list->info); }, listener);
    return list;
}

/* Makes list mode from columns: crystals [n][2], and n numbers or None for each of: time of flight in mm, time in ms,
 * weight, and is_delayed (1 for delayeds). */
static std::shared_ptr<ListMode> listmode_of_columns(Scanner &scanner, nb::handle crystals, nb::handle tof_mm,
                                                     nb::handle time_ms, nb::handle weights, nb::handle delayed,
                                                     double tof_resolution_ps, double tof_bin_mm)
{
    auto list = std::make_shared<ListMode>();
    list->lors = scanner.list_lors();
    const auto ends = rows_of<int32_t>(crystals, "crystals", 2);
    const size_t count = ends.shape(0);
    const auto column = [&](nb::handle given, const char *name) {
        using Column = nb::ndarray<const float, nb::c_contig, nb::device::cpu, nb::ro>;
        if (given.is_none()) return Column();
        Column values = rows_of<float>(given, name, 0);
        if (values.size() != count)
            throw nb::value_error((std::string(name) + " has " + std::to_string(values.size()) +
                                   " numbers, and there are " + std::to_string(count) + " events")
                                      .c_str());
        return values;
    };
    const auto tof = column(tof_mm, "tof_mm"), weight = column(weights, "weights");
    nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu, nb::ro> times, delays;
    const int num_crystals = scanner.scanner->num_crystals;
    if (!time_ms.is_none()) times = rows_of<int64_t>(time_ms, "time_ms", 0);
    if (!delayed.is_none()) delays = rows_of<int64_t>(delayed, "delayed", 0);
    if ((times.is_valid() && times.size() != count) || (delays.is_valid() && delays.size() != count))
        throw nb::value_error("time_ms and delayed need a number for each event");
    list->events.resize(count);
    for (size_t k = 0; k < count; k++) {
        lr_event &event = list->events[k];
        event = {};
        for (int end = 0; end < 2; end++) {
            event.crystals[end] = ends.data()[2 * k + end];
            if (event.crystals[end] < 0 || event.crystals[end] >= num_crystals)
                throw nb::value_error(("event " + std::to_string(k) + " names the crystal " +
                                       std::to_string(event.crystals[end]) + ": the scanner has " +
                                       std::to_string(num_crystals) + ", from 0 on")
                                          .c_str());
        }
        event.tof_mm = tof.is_valid() ? tof.data()[k] : 0.0f;
        event.weight = weight.is_valid() ? weight.data()[k] : 1.0f;
        event.time_ms = times.is_valid() ? (uint32_t)times.data()[k] : 0;
        event.is_delayed = delays.is_valid() && delays.data()[k] != 0;
    }
    list->info.has_tof = tof.is_valid();
    list->info.tof_bin_mm = tof_bin_mm;
    list->info.tof_resolution_ps = tof_resolution_ps > 0 ? tof_resolution_ps : scanner.scanner->tof_resolution_ps;
    if (list->info.has_tof && list->info.tof_resolution_ps <= 0)
        throw nb::value_error("events have times of flight, and the scanner no resolution: give tof_resolution_ps");
    return list;
}

/* Finds the LOR of each event; -1 if the event is out of coincidence. */
static nb::object event_lors(const ListMode &list)
{
    std::vector<int64_t> numbers(list.events.size());
    const lr_event_span span = {list.events.data(), (int64_t)list.events.size(), 0};
    {
        nb::gil_scoped_release unlocked;
        lr_events_lors(list.lors->lors, &span, numbers.data());
    }
    const size_t num = numbers.size();
    return numpy_array(std::move(numbers), {num});
}

/* Counts the events in coincidence. */
static int64_t num_joined(const ListMode &list)
{
    nb::gil_scoped_release unlocked;
    const lr_event_span span = {list.events.data(), (int64_t)list.events.size(), 0};
    return lr_events_count_joined(list.lors->lors, &span);
}

template <class Number, class Get> static nb::object column_of(const ListMode &list, Get get)
{
    std::vector<Number> numbers(list.events.size());
    for (size_t k = 0; k < numbers.size(); k++) numbers[k] = get(list.events[k]);
    const size_t num = numbers.size();
    return numpy_array(std::move(numbers), {num});
}

static nb::object event_crystals(const ListMode &list)
{
    std::vector<int32_t> numbers(2 * list.events.size());
    for (size_t k = 0; k < numbers.size(); k++) numbers[k] = list.events[k / 2].crystals[k % 2];
    return numpy_array(std::move(numbers), {list.events.size(), 2});
}

void bind_listmode(nb::module_ &m)
{
    nb::class_<ListMode>(m, "ListMode")
        .def_static("read", &listmode_read, "scanner"_a, "path"_a, "companion"_a.none(), "listener"_a.none())
        .def_static("of_columns", &listmode_of_columns, "scanner"_a, "crystals"_a, "tof_mm"_a.none(),
                    "time_ms"_a.none(), "weights"_a.none(), "delayed"_a.none(), "tof_resolution_ps"_a, "tof_bin_mm"_a)
        .def("lors", &event_lors)
        .def("crystals", &event_crystals)
        .def(
            "tof_mm",
            [](const ListMode &list) {
                return column_of<float>(
                    list, [](const lr_event &e) { return e.tof_mm; });
            })
        .def(
            "weights",
            [](const ListMode &list) {
                return column_of<float>(
                    list, [](const lr_event &e) { return e.weight; });
            })
        .def(
            "time_ms",
            [](const ListMode &list) {
                return column_of<int64_t>(
                    list, [](const lr_event &e) { return e.time_ms; });
            })
        .def(
            "delayed",
            [](const ListMode &list) {
                return column_of<uint8_t>(
                    list, [](const lr_event &e) { return e.is_delayed; });
            })
        .def_prop_ro(
            "count", [](const ListMode &list) { return list.events.size(); })
        .def_prop_ro("num_joined", &num_joined)
        .def_prop_ro(
            "has_tof", [](const ListMode &list) { return list.info.has_tof; })
        .def_prop_ro(
            "tof_resolution_ps", [](const ListMode &list) { return list.info.tof_resolution_ps; })
        .def_prop_ro(
            "duration_s", [](const ListMode &list) { return list.info.duration_s; });
}
