#include "python/src/feeds.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "python/src/bind.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {

namespace py = pybind11;

std::vector<exec::Feed> FeedsOf(const py::list& feeds) {
  std::vector<exec::Feed> out;
  for (const py::handle& feed : feeds) {
    const auto [name, value] = feed.cast<std::pair<std::string, py::object>>();
    const bool is_tensor = py::isinstance<TensorHandle>(value);
    out.push_back({name, is_tensor ? value.cast<const TensorHandle&>().tensor() : BorrowArray(value)});
    if (is_tensor) RequireWholeSequences(out.back().tensor);
  }
  return out;
}

py::list HandlesOf(std::vector<Variable> values) {
  py::list out;
  for (Variable& value : values) {
    if (value.Is<TensorArray>()) {
      out.append(ArrayHandle(std::move(value)));
    } else {
      out.append(TensorHandle(std::move(value)));
    }
  }
  return out;
}

}  // namespace penstock::python
