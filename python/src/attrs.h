// Converts attributes between Python and C++. A Python int may be an INT, a LONG or a FLOAT: the op's schema
// decides if it is known; otherwise the value decides.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string_view>

#include "framework/ir/attr.h"

namespace penstock::python {

// Converts `value` to `kind`, or to the kind that fits the value if `kind` is empty. As with ConvertAttr, a
// number of another type fits if its value does not change; only a FLOAT rounds, to 32 bits. Throws
// StatusError E-attr-type, which names the op, the attribute and the value, if the value does not fit.
Attr AttrFromPython(pybind11::handle value, std::optional<AttrKind> kind, std::string_view op,
                    std::string_view name);
// A block is converted to its index.
pybind11::object AttrToPython(const Attr& attr);

}  // namespace penstock::python
