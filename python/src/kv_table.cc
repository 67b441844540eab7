// Bindings of tables of key-value stores: what a table is made of, as text, and a table of one process.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/kvstore/key_table.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using kvstore::LocalTable;
using kvstore::TableFacts;
using kvstore::TableSpec;

TableFacts FactsOfTable(const std::string& name, const std::string& dtype, Dim width) {
  if (width < 1)
    throw StatusError(InvalidArgument("E-kv-key-type", "table ", name, " has rows of ", width, " elements"));
  return {.name = name,
          .dtype = dtype == "float32"   ? DType::kFp32
                   : dtype == "float64" ? DType::kFp64
                                        : DType::kInt64,  // refused by KeyTable::Make
          .width = width};
}

// The text of a table, if such a table can be made.
std::string SpecOfTable(const std::string& name, const std::string& dtype, Dim width,
                        const std::tuple<std::string, double, double>& start, std::uint64_t seed,
                        const std::string& policy, const kvstore::KeyOptimizer& optimizer) {
  TableSpec spec;
  const auto& [kind, first, second] = start;
  spec.start = Take(kvstore::MakeTableStart(kind, first, second, seed));
  if (!policy.empty()) spec.policy = Take(ParseRowPolicy(policy));
  spec.optimizer = optimizer;
  (void)Take(kvstore::KeyTable::Make(FactsOfTable(name, dtype, width), spec, AllOps()));
  return spec.ToString();
}

// int64, in one piece. The array outlives the result.
std::span<const std::int64_t> IdsIn(const Tensor& array) {
  if (array.dtype() != DType::kInt64)
    throw StatusError(InvalidArgument("E-kv-array", "ids are int64, not ", DTypeName(array.dtype())));
  return array.Span<std::int64_t>();
}

class PyKvLocalTable {
 public:
  PyKvLocalTable(const std::string& name, const std::string& dtype, Dim width, const std::string& spec)
      : facts_(FactsOfTable(name, dtype, width)),
        table_(Take(LocalTable::Make(facts_, Take(kvstore::ParseTableSpec(spec)), AllOps()))) {}

  py::object Lookup(const py::object& ids) const {
    const Tensor given = BorrowArray(ids);
    const std::span<const std::int64_t> wanted = IdsIn(given);
    Tensor out(facts_.dtype, Shape({static_cast<Dim>(wanted.size()), facts_.width}));
    Status status;
    {
      const GilReleased others;
      status = table_->Lookup(wanted, out);
    }
    Check(std::move(status));
    return ViewAsArray(out);
  }
  void Push(const py::object& ids, const py::object& gradients) {
    const Tensor given = BorrowArray(ids), values = BorrowArray(gradients);
    const std::span<const std::int64_t> pushed = IdsIn(given);
    Status status;
    {
      const GilReleased others;
      status = table_->Push(pushed, values);
    }
    Check(std::move(status));
  }
  std::uint64_t updates() const { return table_->updates(); }

 private:
  const TableFacts facts_;
  const std::unique_ptr<LocalTable> table_;
};

}  // namespace

void BindKvTable(py::module_& m) {
  m.def("kv_table_spec", &SpecOfTable, py::arg("name"), py::arg("dtype"), py::arg("width"), py::arg("start"),
        py::arg("seed"), py::arg("policy"), py::arg("optimizer"));
  py::class_<PyKvLocalTable>(m, "KvLocalTable")
      .def(py::init<const std::string&, const std::string&, Dim, const std::string&>(), py::arg("name"),
           py::arg("dtype"), py::arg("width"), py::arg("spec"))
      .def("lookup", &PyKvLocalTable::Lookup, py::arg("ids"))
      .def("push", &PyKvLocalTable::Push, py::arg("ids"), py::arg("gradients"))
      .def_property_readonly("updates", &PyKvLocalTable::updates);
}

}  // namespace penstock::python
