// Bindings of BatchQueue, which a reader's thread fills, and of the flag that makes runs check for NaN.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/schedule/nan_check.h"
#include "framework/runtime/batch_queue.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/runner.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Copies the value, because a generator may yield the same array again and again.
Tensor OwnTensor(const py::handle& value) {
  if (py::isinstance<TensorHandle>(value)) {
    const Tensor& given = value.cast<const TensorHandle&>().tensor();
    RequireWholeSequences(given);
    return given.Clone();
  }
  Tensor tensor;
  CopyArray(value, tensor);
  return tensor;
}

bool Push(BatchQueue& queue, const py::list& values) {
  Batch batch;
  for (const py::handle& value : values) batch.push_back(OwnTensor(value));
  const GilReleased release;
  return queue.Push(std::move(batch));
}

// Returns a list of tensors; None at the end.
py::object Pop(BatchQueue& queue) {
  std::optional<Result<std::optional<Batch>>> result;
  RunInterruptibly([&] { result = queue.Pop(); }, [] { BatchQueue::CancelWaits(); });
  std::optional<Batch> batch = Take(*std::move(result));
  if (!batch.has_value()) return py::none();
  py::list out;
  for (Tensor& tensor : *batch) {
    Variable value;
    value.As<Tensor>() = std::move(tensor);
    out.append(TensorHandle(std::move(value)));
  }
  return out;
}

}  // namespace

void BindReaders(py::module_& m) {
  py::class_<BatchQueue, std::shared_ptr<BatchQueue>>(m, "BatchQueue")
      .def(py::init(&BatchQueue::Make))
      .def_property_readonly("number", &BatchQueue::number)
      .def("size", &BatchQueue::size)
      .def("push", &Push)
      .def("pop", &Pop)
      .def("end", &BatchQueue::End)
      // `text` states the error, `lines` its place.
      .def("fail",
           [](BatchQueue& queue, const std::string& text, const std::vector<std::string>& lines) {
             Status error = FailedPrecondition("E-read-failed", "the reader raised ", text);
             for (const std::string& line : lines) error.With(line);
             queue.Fail(std::move(error));
           })
      .def("open", &BatchQueue::Open)
      .def("close", &BatchQueue::Close);
  m.def("check_nan_inf", &exec::CheckNanInf);
  m.def("set_check_nan_inf", &exec::SetCheckNanInf);
}

}  // namespace penstock::python
