/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

static PyObject *failed, *no_device;

static nb::list devices()
{
    Calls calls;
    std::vector<lr_device> found(16);
    int count = 0;
    calls.run([&] {
        count = lr_device_list(found.data(), (int)found.size(), &calls.log);
        return LR_OK;
    });
    nb::list list;
    for (int k = 0; k < count && k < (int)found.size(); k++) {
        nb::dict device;
        device["way"] = found[k].way;
        device["renderer"] = found[k].renderer;
        device["usable"] = found[k].usable;
        device["software"] = found[k].software;
        device["memory_bytes"] = found[k].memory_bytes;
        device["reason"] = found[k].reason;
        list.append(device);
    }
    return list;
}

NB_MODULE(_core, m)
{
    // The interpreter may end before operators are freed, for example operators in a network of PyTorch.
    nb::set_leak_warnings(false);
    failed = PyErr_NewExceptionWithDoc("loraster.Error", "Work that could not be done: the sentence says why.",
                                       PyExc_RuntimeError, nullptr);
    no_device = PyErr_NewExceptionWithDoc("loraster.NoDeviceError", "OpenGL, CUDA or a device is missing, or was lost.",
                                          failed, nullptr);
    m.attr("Error") = nb::borrow(failed);
    m.attr("NoDeviceError") = nb::borrow(no_device);
    nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Failure &failure) {
            const bool is_of_caller = failure.status == LR_USAGE || failure.status == LR_BAD_INPUT;
            PyObject *type = is_of_caller ? PyExc_ValueError : failure.status == LR_NO_DEVICE ? no_device : failed;
            PyErr_SetString(type, failure.sentence.c_str());
        }
    });
    m.def("version", &lr_version);
    m.def("devices", &devices);
    bind_scanner(m);
    bind_operator(m);
    bind_listmode(m);
    bind_direct(m);
    bind_recon(m);
    bind_io(m);
    bind_picture(m);
}
