// Attributes between Python and C++. A Python int may be an INT, a LONG or a FLOAT: the op's schema decides
// where it is known, else the value does.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string_view>

#include "framework/ir/attr.h"

namespace penstock::python {

// Throws StatusError(E-attr-type) that names the attribute if the value does not fit the kind.
Attr AttrFromPython(pybind11::handle value, std::optional<AttrKind> kind, std::string_view op,
                    std::string_view name);
// A block comes out as its index.
pybind11::object AttrToPython(const Attr& attr);

}  // namespace penstock::python
