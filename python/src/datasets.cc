// Bindings of data sets: files that threads read, instances in memory, and queries of train_from_dataset.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/dataset/reading.h"
#include "executor/dataset/records.h"
#include "executor/dataset/records_edit.h"
#include "executor/process/diagnosis.h"
#include "framework/roles/trainer_facts.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/program_box.h"
#include "python/src/runner.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// (name, whether its numbers are floats, whether batches contain it, the extents of an instance or None for a
// sequence)
using SlotFacts = std::tuple<std::string, bool, bool, std::optional<std::vector<Dim>>>;

class PyDataset {
 public:
  PyDataset(const std::vector<SlotFacts>& slots, bool drops_zeros, bool has_ids, bool has_contents) {
    format_.drops_zeros = drops_zeros;
    format_.has_ids = has_ids;
    format_.has_contents = has_contents;
    for (const auto& [name, is_float, used, extents] : slots) {
      format_.slots.push_back({.name = name,
                               .is_float = is_float,
                               .used = used,
                               .dense = extents.has_value(),
                               .extents = Shape(extents.value_or(std::vector<Dim>()))});
    }
    Check(dataset::CheckFormat(format_));
  }

  void Load(std::vector<std::string> files, std::string command, std::size_t threads) {
    RequireIdle();
    dataset::PipeCommands commands;
    Status status;
    RunInterruptibly(
        [&] {
          status =
              dataset::Load(format_, {std::move(files), std::move(command)}, threads, commands, records_);
        },
        [&] { commands.Stop(); });
    Check(std::move(status));
  }
  std::unique_ptr<dataset::Reading> ReadFiles(std::vector<std::string> files, std::string command,
                                              std::size_t threads, std::size_t batch_size) const {
    return dataset::Reading::OfFiles(format_, {std::move(files), std::move(command)},
                                     {.threads = threads, .batch_size = batch_size});
  }
  std::unique_ptr<dataset::Reading> ReadRecords(std::size_t threads, std::size_t batch_size) {
    auto reading =
        dataset::Reading::OfRecords(format_, records_, {.threads = threads, .batch_size = batch_size});
    ++readings_;
    return reading;
  }
  void EndReadingRecords() { --readings_; }

  std::size_t size() const { return records_.size(); }
  void Shuffle(std::uint64_t seed) {
    RequireIdle();
    const GilReleased others;
    records_.Shuffle(seed);
  }
  // Starts from the instances before the first call.
  void ShuffleSlots(const std::set<std::string>& slots, std::size_t candidates, std::uint64_t seed) {
    RequireIdle();
    const GilReleased others;
    if (!original_) original_ = std::move(records_);
    records_ = dataset::ShuffleSlots(format_, *original_, slots, candidates, seed);
  }
  // [(id, instances, slot)] of the instances that were dropped.
  std::vector<std::tuple<std::string, std::size_t, std::string>> MergeById(std::size_t size) {
    RequireIdle();
    std::vector<std::tuple<std::string, std::size_t, std::string>> out;
    const GilReleased others;
    std::vector<dataset::Dropped> dropped;
    records_ = dataset::MergeById(format_, records_, size, dropped);
    for (dataset::Dropped& one : dropped)
      out.emplace_back(std::move(one.id), one.instances, std::move(one.slot));
    return out;
  }
  void Clear() {
    RequireIdle();
    records_ = dataset::Records();
    original_.reset();
  }
  // The packed instances for each of `parts` trainers.
  std::vector<py::bytes> Pack(std::size_t parts, std::uint64_t salt) const {
    std::vector<std::string> packed(parts);
    {
      const GilReleased others;
      for (std::size_t part = 0; part < parts; ++part) packed[part] = records_.Pack(part, parts, salt);
    }
    std::vector<py::bytes> out;
    for (std::string& each : packed) out.emplace_back(std::exchange(each, {}));
    return out;
  }
  void Unpack(const py::bytes& given) {
    RequireIdle();
    const std::string_view packed = given;
    Status status;
    {
      const GilReleased others;
      status = records_.Unpack(format_, packed);
    }
    Check(std::move(status));
  }

 private:
  void RequireIdle() const {
    if (readings_ == 0) return;
    throw StatusError(FailedPrecondition("E-dataset-in-use",
                                         "dataset: its instances are being read; wait for the end of ",
                                         "train_from_dataset"));
  }

  dataset::Format format_;
  dataset::Records records_;
  std::optional<dataset::Records> original_;  // before the first ShuffleSlots
  int readings_ = 0;                          // readings of records_ in progress
};

// Nanoseconds that the training thread has waited for peers so far.
std::int64_t ExposedNs() { return process::Diagnosis::OfThisProcess().observer().Now().exposed.count(); }

// Whether several threads of this process may run the program at the same time: it exchanges nothing with
// other processes, or leaves the exchange to a communicator that has no steps (mode ASYNC).
bool ThreadsMayShare(const ProgramBox& box) {
  using Kind = roles::CommOp::Kind;
  for (const roles::CommOp& one : roles::ReadTrainer(box.program).ops) {
    if (!one.by_communicator) return false;
    if (one.kind != Kind::kSend && one.kind != Kind::kRecv && one.kind != Kind::kStep) return false;
  }
  const auto& ops = box.program.main().ops();
  return std::none_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
    const std::string& type = entry.op->type();
    return StartsWith(type, "c_") || type == "allreduce" || type == "broadcast" || type == "listen_and_serv";
  });
}

// The reading keeps the data set alive. With pybind11's keep_alive<0, 1>, a `self` of another class crashes.
py::object ReadRecords(const py::object& self, std::size_t threads, std::size_t batch_size) {
  if (!py::isinstance<PyDataset>(self)) {
    throw StatusError(InvalidArgument("E-argument-type", "Dataset.read_records: self must be a Dataset"));
  }
  py::object reading = py::cast(self.cast<PyDataset&>().ReadRecords(threads, batch_size));
  py::detail::keep_alive_impl(reading, self);
  return reading;
}

}  // namespace

void BindDatasets(py::module_& m) {
  m.def("exposed_ns", &ExposedNs);
  m.def("threads_may_share", &ThreadsMayShare);
  py::class_<dataset::Reading>(m, "DatasetReading")
      .def_property_readonly("queues", &dataset::Reading::queues)
      .def("stop", &dataset::Reading::Stop, py::call_guard<GilReleased>());
  py::class_<PyDataset>(m, "Dataset")
      .def(py::init<const std::vector<SlotFacts>&, bool, bool, bool>(), py::arg("slots"),
           py::arg("drops_zeros"), py::arg("has_ids"), py::arg("has_contents") = false)
      .def("load", &PyDataset::Load)
      .def("read_files", &PyDataset::ReadFiles)
      .def("read_records", &ReadRecords)
      .def("end_reading_records", &PyDataset::EndReadingRecords)
      .def("size", &PyDataset::size)
      .def("shuffle", &PyDataset::Shuffle)
      .def("shuffle_slots", &PyDataset::ShuffleSlots)
      .def("merge_by_id", &PyDataset::MergeById)
      .def("clear", &PyDataset::Clear)
      .def("pack", &PyDataset::Pack)
      .def("unpack", &PyDataset::Unpack);
}

}  // namespace penstock::python
