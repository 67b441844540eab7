#include "python/src/dispatcher.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::python {
namespace {

namespace py = pybind11;

// The last owner may release the object on any thread.
std::shared_ptr<py::object> Shared(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            const py::gil_scoped_acquire acquire;
            delete held;
          }};
}

// Stores an exception in `raised` and returns an error, so that no exception passes through the transpiler.
template <typename T, typename Call>
Result<T> Guarded(const Raised& raised, Call call) {
  const py::gil_scoped_acquire acquire;
  try {
    return call();
  } catch (const py::error_already_set&) {
    *raised = std::current_exception();
  } catch (const py::cast_error&) {
    *raised = std::current_exception();
  }
  return InvalidArgument("E-plan-dispatcher", "plan: the dispatcher raised an exception");
}

class PythonDispatcher : public plan::Dispatcher {
 public:
  PythonDispatcher(std::shared_ptr<py::object> dispatcher, Raised raised)
      : dispatcher_(std::move(dispatcher)), raised_(std::move(raised)) {}

  Result<std::vector<std::string>> Dispatch(const std::vector<plan::Piece>& pieces) override {
    return Guarded<std::vector<std::string>>(raised_, [&] {
      py::list asked;
      for (const plan::Piece& piece : pieces) {
        asked.append(py::make_tuple(piece.name, std::vector<Dim>(piece.shape.dims()),
                                    std::string(DTypeName(piece.dtype)), piece.sparse));
      }
      return dispatcher_->attr("dispatch")(asked).cast<std::vector<std::string>>();
    });
  }
  Status Reset() override {
    return Guarded<bool>(raised_,
                         [&] {
                           dispatcher_->attr("reset")();
                           return true;
                         })
        .status();
  }

 private:
  std::shared_ptr<py::object> dispatcher_;
  Raised raised_;
};

}  // namespace

plan::DispatcherFactory PythonDispatchers(py::object make, Raised raised) {
  return [make = Shared(std::move(make)), raised = std::move(raised)](
             const std::vector<std::string>& pservers) -> Result<std::unique_ptr<plan::Dispatcher>> {
    return Guarded<std::unique_ptr<plan::Dispatcher>>(raised, [&]() -> std::unique_ptr<plan::Dispatcher> {
      return std::make_unique<PythonDispatcher>(Shared((*make)(pservers)), raised);
    });
  };
}

}  // namespace penstock::python
