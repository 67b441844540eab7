// Bindings of the key-value store of one process, and of the optimizers of all key-value stores.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/kvstore/local_store.h"
#include "executor/kvstore/optimizer_program.h"
#include "framework/base/files.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/buffer_view.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/program_box.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using kvstore::KeyOptimizer;
using kvstore::LocalStore;
using NumberMap = std::map<std::string, double>;
using Texts = std::map<std::string, std::string>;

kvstore::Numbers NumbersOf(const NumberMap& numbers) { return {numbers.begin(), numbers.end()}; }
NumberMap MapOf(const kvstore::Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

KeyOptimizer NewOptimizer(const std::string& name, const NumberMap& numbers,
                          const std::optional<kvstore::Schedule>& schedule, const Texts& param_names) {
  return Take(kvstore::MakeOptimizer(name, NumbersOf(numbers), schedule.value_or(kvstore::Schedule()),
                                     {param_names.begin(), param_names.end()}));
}

// Makes it anew, so that the number is checked.
void SetNumber(KeyOptimizer& optimizer, const std::string& argument, double value) {
  kvstore::Numbers numbers = optimizer.numbers;
  numbers.insert_or_assign(argument, value);
  KeyOptimizer made =
      Take(kvstore::MakeOptimizer(optimizer.name, numbers, optimizer.schedule, optimizer.param_names));
  made.lr_multipliers = std::move(optimizer.lr_multipliers);
  made.wd_multipliers = std::move(optimizer.wd_multipliers);
  optimizer = std::move(made);
}

const char* NumpyName(DType type) {
  switch (type) {
    case DType::kFp16:
      return "float16";
    case DType::kFp32:
      return "float32";
    case DType::kFp64:
      return "float64";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kUInt8:
      return "uint8";
    default:
      return "int64";
  }
}

// The numbers of rows, of an array of numbers in any shape.
std::vector<std::int64_t> IdsOf(const py::object& array) {
  const Tensor given = BorrowArray(array);
  if (!kvstore::CanStore(given.dtype()))
    throw StatusError(InvalidArgument("E-kv-value", "numbers of rows are ", DTypeName(given.dtype())));
  std::vector<std::int64_t> ids(static_cast<std::size_t>(given.count()));
  Tensor cast(DType::kInt64, {given.count()});
  kvstore::CastInto(given, cast);
  std::copy_n(cast.Data<std::int64_t>(), ids.size(), ids.begin());
  return ids;
}

using RowsArrays = std::pair<py::object, py::object>;
SelectedRows RowsOfArrays(const RowsArrays& arrays) {
  return {.rows = IdsOf(arrays.first), .value = BorrowArray(arrays.second)};
}
py::tuple ArraysOfRows(const SelectedRows& rows) {
  Tensor ids(DType::kInt64, {static_cast<Dim>(rows.rows.size())});
  std::copy(rows.rows.begin(), rows.rows.end(), ids.Data<std::int64_t>());
  return py::make_tuple(ViewAsArray(ids), ViewAsArray(rows.value));
}

// An array that takes a result.
class ArrayOut {
 public:
  explicit ArrayOut(const py::object& array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0)
      throw py::error_already_set();
    held_ = true;
    tensor_ = BorrowArray(array);
  }
  ~ArrayOut() {
    if (held_) PyBuffer_Release(&view_);
  }
  ArrayOut(const ArrayOut&) = delete;
  ArrayOut& operator=(const ArrayOut&) = delete;

  Tensor& tensor() { return tensor_; }
  // Needed if the array's memory could not be borrowed.
  void Write() {
    if (tensor_.raw() == view_.buf) return;
    if (view_.len > 0 && PyBuffer_FromContiguous(&view_, tensor_.raw(), view_.len, 'C') != 0)
      throw py::error_already_set();
  }

 private:
  Py_buffer view_{};
  bool held_ = false;
  Tensor tensor_;
};

// A LocalStore whose calls come one at a time, while other Python threads run.
class PyKvLocal {
 public:
  explicit PyKvLocal(bool device)
      : store_(AllOps(), {.order = device ? kvstore::SumOrder::kLeftToRight : kvstore::SumOrder::kInFours}) {}

  void Init(const std::string& key, const py::object& value) {
    const Tensor given = BorrowArray(value);
    Call([&] { return store_.Init(key, given); });
  }
  void InitRows(const std::string& key, const std::vector<Dim>& shape, const py::object& rows,
                const py::object& values) {
    SelectedRows given = RowsOfArrays({rows, values});
    given.height = shape.empty() ? 0 : shape.front();
    Call([&] { return store_.InitRows(key, given, Shape(shape)); });
  }
  void Push(const std::string& key, const std::vector<py::object>& values) {
    const std::vector<Tensor> given = Borrowed(values);
    Call([&] { return store_.Push(key, given); });
  }
  void PushRows(const std::string& key, const std::vector<RowsArrays>& values) {
    const std::vector<SelectedRows> given = BorrowedRows(values);
    Call([&] { return store_.PushRows(key, given); });
  }
  py::object Merge(const std::string& key, const std::vector<py::object>& values) {
    const std::vector<Tensor> given = Borrowed(values);
    return ViewAsArray(Give<Tensor>([&] { return store_.Merge(key, given); }));
  }
  py::tuple MergeRows(const std::string& key, const std::vector<RowsArrays>& values) {
    const std::vector<SelectedRows> given = BorrowedRows(values);
    return ArraysOfRows(Give<SelectedRows>([&] { return store_.MergeRows(key, given); }));
  }
  void Assign(const std::string& key, const py::object& value) {
    const Tensor given = BorrowArray(value);
    Call([&] { return store_.Assign(key, given); });
  }
  void Pull(const std::string& key, const py::object& out) {
    ArrayOut to(out);
    Call([&] { return store_.Pull(key, to.tensor()); });
    to.Write();
  }
  py::tuple PullRows(const std::string& key, const py::object& rows) {
    const std::vector<std::int64_t> ids = IdsOf(rows);
    return ArraysOfRows(Give<SelectedRows>([&] { return store_.PullRows(key, ids); }));
  }
  std::vector<std::string> Keys() { return store_.Keys(); }
  std::tuple<std::string, std::vector<Dim>, bool> FactsOf(const std::string& key) {
    const LocalStore::Facts facts = Take(store_.FactsOf(key));
    return {NumpyName(facts.dtype), std::vector<Dim>(facts.shape.dims().begin(), facts.shape.dims().end()),
            facts.rows};
  }

  void SetOptimizer(const std::optional<KeyOptimizer>& optimizer) {
    Call([&] {
      store_.SetOptimizer(optimizer);
      return OkStatus();
    });
  }
  void ChangeOptimizer(const KeyOptimizer& optimizer) {
    Call([&] { return store_.ChangeOptimizer(optimizer); });
  }
  void SetCompression(double threshold) {
    Call([&] { return store_.SetCompression(static_cast<float>(threshold)); });
  }
  void SaveStates(const std::string& file, bool with_optimizer) {
    Call([&]() -> Status {
      PENSTOCK_ASSIGN_OR_RETURN(const kvstore::SavedStates states, store_.States(with_optimizer));
      return WriteFile(file, states.ToBytes());
    });
  }
  std::optional<KeyOptimizer> LoadStates(const std::string& file) {
    return Give<std::optional<KeyOptimizer>>([&]() -> Result<std::optional<KeyOptimizer>> {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
      PENSTOCK_ASSIGN_OR_RETURN(kvstore::SavedStates states, kvstore::SavedStates::Parse(bytes, &AllOps()));
      std::optional<KeyOptimizer> optimizer = states.optimizer;
      PENSTOCK_RETURN_IF_ERROR(store_.SetStates(std::move(states)));
      return optimizer;
    });
  }

 private:
  static std::vector<Tensor> Borrowed(const std::vector<py::object>& values) {
    std::vector<Tensor> given;
    for (const py::object& value : values) given.push_back(BorrowArray(value));
    return given;
  }
  static std::vector<SelectedRows> BorrowedRows(const std::vector<RowsArrays>& values) {
    std::vector<SelectedRows> given;
    for (const RowsArrays& value : values) given.push_back(RowsOfArrays(value));
    return given;
  }
  template <typename T, typename Function>
  T Give(const Function& function) {
    std::optional<Result<T>> given;
    {
      const GilReleased others;
      const std::lock_guard lock(mutex_);
      given.emplace(function());
    }
    return Take(*std::move(given));
  }
  template <typename Function>
  void Call(const Function& function) {
    Status status;
    {
      const GilReleased others;
      const std::lock_guard lock(mutex_);
      status = function();
    }
    Check(std::move(status));
  }

  std::mutex mutex_;
  LocalStore store_;
};

void BindOptimizer(py::module_& m) {
  py::class_<kvstore::Schedule>(m, "KvSchedule")
      .def(py::init([](const std::string& type, const NumberMap& numbers, std::vector<std::int64_t> steps,
                       bool constant_warmup) {
             return Take(kvstore::MakeSchedule(type, NumbersOf(numbers), std::move(steps), constant_warmup));
           }),
           py::arg("type"), py::arg("numbers"), py::arg("steps") = std::vector<std::int64_t>(),
           py::arg("constant_warmup") = false)
      .def_property_readonly("numbers", [](const kvstore::Schedule& s) { return MapOf(s.numbers); })
      .def(
          "rate", [](const kvstore::Schedule& s, std::int64_t number) { return kvstore::RateAt(s, number); },
          py::arg("number"));
  py::class_<KeyOptimizer>(m, "KvOptimizer")
      .def(py::init(&NewOptimizer), py::arg("name"), py::arg("numbers"), py::arg("schedule") = py::none(),
           py::arg("param_names") = Texts())
      .def_static(
          "parse", [](const std::string& text) { return Take(kvstore::ParseOptimizer(text, &AllOps())); },
          py::arg("text"))
      .def_static(
          "of_program",
          [](const ProgramBox& update, const ProgramBox& startup, const std::string& param,
             const std::string& grad) {
            return Take(kvstore::ProgramOptimizer(
                {.update = update.program, .start = startup.program, .param = param, .grad = grad},
                AllOps()));
          },
          py::arg("update"), py::arg("startup"), py::arg("param"), py::arg("grad"))
      .def_static("names", &kvstore::OptimizerNames)
      .def_property_readonly("name", [](const KeyOptimizer& o) { return o.name; })
      .def_property_readonly("numbers", [](const KeyOptimizer& o) { return MapOf(o.numbers); })
      .def_property_readonly("text", &KeyOptimizer::ToString)
      .def(
          "set_lr_mult",
          [](KeyOptimizer& o, const NumberMap& factors) { o.lr_multipliers = NumbersOf(factors); },
          py::arg("factors"))
      .def(
          "set_wd_mult",
          [](KeyOptimizer& o, const NumberMap& factors) {
            kvstore::SetDecayMultipliers(o, NumbersOf(factors));
          },
          py::arg("factors"))
      .def("set_number", &SetNumber, py::arg("argument"), py::arg("value"))
      .def(
          "rate",
          [](const KeyOptimizer& o, std::int64_t number) { return NumbersAt(o, "", number, number).rate; },
          py::arg("number"));
}

}  // namespace

void BindKvLocal(py::module_& m) {
  BindOptimizer(m);
  py::class_<PyKvLocal>(m, "KvLocal")
      .def(py::init<bool>(), py::arg("device") = false)
      .def("init", &PyKvLocal::Init, py::arg("key"), py::arg("value"))
      .def("init_rows", &PyKvLocal::InitRows, py::arg("key"), py::arg("shape"), py::arg("rows"),
           py::arg("values"))
      .def("push", &PyKvLocal::Push, py::arg("key"), py::arg("values"))
      .def("push_rows", &PyKvLocal::PushRows, py::arg("key"), py::arg("values"))
      .def("merge", &PyKvLocal::Merge, py::arg("key"), py::arg("values"))
      .def("merge_rows", &PyKvLocal::MergeRows, py::arg("key"), py::arg("values"))
      .def("assign", &PyKvLocal::Assign, py::arg("key"), py::arg("value"))
      .def("pull", &PyKvLocal::Pull, py::arg("key"), py::arg("out"))
      .def("pull_rows", &PyKvLocal::PullRows, py::arg("key"), py::arg("rows"))
      .def("keys", &PyKvLocal::Keys)
      .def("facts", &PyKvLocal::FactsOf, py::arg("key"))
      .def("set_optimizer", &PyKvLocal::SetOptimizer, py::arg("optimizer"))
      .def("change_optimizer", &PyKvLocal::ChangeOptimizer, py::arg("optimizer"))
      .def("set_compression", &PyKvLocal::SetCompression, py::arg("threshold"))
      .def("save_states", &PyKvLocal::SaveStates, py::arg("file"), py::arg("with_optimizer") = false)
      .def("load_states", &PyKvLocal::LoadStates, py::arg("file"));
}

}  // namespace penstock::python
