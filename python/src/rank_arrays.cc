// Operations of all ranks on arrays, for penstock.hvd. They use the first ring, as programs do, so a rank
// that exchanges an array while others run a program is detected at once, and the error names its line.
//
// Ranks must start operations in the same order. Operations that several Python threads start are serialised;
// the threads must agree on the order, and ranks whose orders differ get E-collective-mismatch.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/collective/gloo/gloo.h"
#include "executor/collective/rendezvous/join_facts.h"
#include "executor/process/ring_backend.h"
#include "framework/runtime/adasum.h"
#include "framework/runtime/uneven_steps.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/process_rings.h"
#include "python/src/runner.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr int kArrayRing = 0;

// The mutex that is held while an operation is started, and while the rings end.
std::mutex& Starting() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

// Pins the memory of a C-contiguous array for its lifetime.
class ArrayMemory {
 public:
  ArrayMemory(const py::handle& array, const std::string& type, bool written) : type_(type) {
    const int flags = PyBUF_C_CONTIGUOUS | (written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) throw py::error_already_set();
    const std::optional<DType> dtype = DTypeFromName(type);
    const std::optional<ElementType> found = dtype ? ElementTypeOf(*dtype) : std::nullopt;
    if (found && static_cast<Py_ssize_t>(SizeOf(*found)) == view_.itemsize) {
      element_ = *found;
      return;
    }
    PyBuffer_Release(&view_);
    throw StatusError(InvalidArgument("E-array-dtype", "ranks do not exchange elements of ", type));
  }
  ~ArrayMemory() { PyBuffer_Release(&view_); }
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  Elements elements() const {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::int64_t>(view_.len / view_.itemsize),
            element_};
  }

 private:
  Py_buffer view_{};
  std::string type_;
  ElementType element_ = ElementType::kUInt8;
};
using Memories = std::vector<std::unique_ptr<ArrayMemory>>;

std::unique_ptr<ArrayMemory> Written(const py::handle& array, const std::string& type) {
  return std::make_unique<ArrayMemory>(array, type, /*written=*/true);
}
std::unique_ptr<ArrayMemory> Read(const py::handle& array, const std::string& type) {
  return std::make_unique<ArrayMemory>(array, type, /*written=*/false);
}

// An operation in progress and the memory that it uses. Create it, wait for it and destroy it with the GIL
// held.
class PendingArrays {
 public:
  PendingArrays(Completion completion, Memories memories)
      : completion_(std::move(completion)), memories_(std::move(memories)) {}
  // If the operation is still in progress, other ranks may write to the memory, so it is never released.
  ~PendingArrays() {
    if (completion_.done()) return;
    for (std::unique_ptr<ArrayMemory>& memory : memories_) static_cast<void>(memory.release());
  }
  PendingArrays(const PendingArrays&) = delete;
  PendingArrays& operator=(const PendingArrays&) = delete;

  bool done() const { return completion_.done(); }
  void Wait() {
    Status status;
    if (completion_.done()) {
      status = completion_.Wait();
    } else {
      process::JobRings& rings = RingsOfThisProcess();
      RunInterruptibly([&] { status = rings.Wait(completion_); }, [&] { rings.Cancel(); });
    }
    NoteReaction(status);
    Check(std::move(status));
  }

 private:
  const Completion completion_;
  Memories memories_;
};
using Started = std::unique_ptr<PendingArrays>;

Started Start(Memories memories, int ring, const std::function<Completion(CollectiveGroup&)>& start) {
  process::JobRings& rings = RingsOfThisProcess();
  std::optional<Result<Completion>> started;
  {
    const GilReleased others;
    const std::lock_guard lock(Starting());
    started = [&]() -> Result<Completion> {
      PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(ring));
      return start(*group);
    }();
  }
  return std::make_unique<PendingArrays>(Take(*std::move(started)), std::move(memories));
}

Reduction ReductionOfText(const std::string& text) {
  for (const Reduction each : {Reduction::kSum, Reduction::kMean, Reduction::kProduct, Reduction::kMax}) {
    if (text == ReductionName(each)) return each;
  }
  return Reduction::kMin;
}

Started AllReduce(const py::handle& array, const std::string& type, const std::string& reduction,
                  const std::string& label, std::uint64_t tag, int ring) {
  Memories memories;
  memories.push_back(Written(array, type));
  const Elements data = memories.front()->elements();
  const Reduction how = ReductionOfText(reduction);
  return Start(std::move(memories), ring, [&](CollectiveGroup& group) {
    return group.AllReduce(data, how, {.label = label, .tag = tag});
  });
}

Started Broadcast(const py::handle& array, const std::string& type, int root, const std::string& label,
                  std::uint64_t tag, int ring) {
  Memories memories;
  memories.push_back(Written(array, type));
  const Elements data = memories.front()->elements();
  return Start(std::move(memories), ring, [&](CollectiveGroup& group) {
    return group.Broadcast(data, root, {.label = label, .tag = tag});
  });
}

Started AllGather(const py::handle& in, const py::handle& out, const std::string& type,
                  const std::vector<std::int64_t>& counts, const std::string& label, std::uint64_t tag,
                  int ring) {
  Memories memories;
  memories.push_back(Read(in, type));
  memories.push_back(Written(out, type));
  const Elements from = memories.front()->elements(), to = memories.back()->elements();
  return Start(std::move(memories), ring, [&](CollectiveGroup& group) {
    return group.AllGather(from, counts, to, {.label = label, .tag = tag});
  });
}

Started ReduceScatter(const py::handle& in, const py::handle& out, const std::string& type,
                      const std::string& reduction, const std::string& label, std::uint64_t tag, int ring) {
  Memories memories;
  memories.push_back(Read(in, type));
  memories.push_back(Written(out, type));
  const Elements from = memories.front()->elements(), to = memories.back()->elements();
  const Reduction how = ReductionOfText(reduction);
  return Start(std::move(memories), ring, [&](CollectiveGroup& group) {
    return group.ReduceScatter(from, to, how, {.label = label, .tag = tag});
  });
}

Started Barrier(const std::string& label, int ring) {
  return Start({}, ring, [&](CollectiveGroup& group) { return group.Barrier({.label = label}); });
}

Started SendRecv(const py::handle& out, int to, const py::handle& in, int from, const std::string& label,
                 int ring) {
  Memories memories;
  memories.push_back(Read(out, "u8"));
  memories.push_back(Written(in, "u8"));
  const Elements sent = memories.front()->elements(), received = memories.back()->elements();
  return Start(std::move(memories), ring, [&](CollectiveGroup& group) {
    return group.SendRecv(sent, to, received, from, {.label = label});
  });
}

// Synchronous: the result is in the array when the function returns.
void Adasum(const py::handle& array, const std::string& type, const std::string& label, std::uint64_t tag) {
  const std::unique_ptr<ArrayMemory> memory = Written(array, type);
  const Elements data = memory->elements();
  process::JobRings& rings = RingsOfThisProcess();
  Status status;
  RunInterruptibly(
      [&] {
        const std::lock_guard lock(Starting());
        status = [&]() -> Status {
          PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(kArrayRing));
          return AllReduceAdasum(rings, *group, data, {.label = label, .tag = tag});
        }();
      },
      [&] { rings.Cancel(); });
  NoteReaction(status);
  Check(std::move(status));
}

OnUneven OnUnevenOfText(const std::string& text) {
  if (const std::optional<OnUneven> known = OnUnevenFromName(text)) return *known;
  throw StatusError(
      InvalidArgument("E-uneven-choice", "batches: on_uneven must be join, pad or error, not ", Quote(text)));
}

// Asks all ranks whether they have a batch, and returns what this rank does in the next step: "own", "joins",
// "pads" or "end".
std::string NextStep(bool has_batch, const std::string& on_uneven, std::int64_t step,
                     const std::string& label) {
  process::JobRings& rings = RingsOfThisProcess();
  SaidOfStep own{.has_batch = has_batch ? 1 : 0, .on_uneven = OnUnevenOfText(on_uneven)};
  std::optional<Result<StepOfRank>> judged;
  RunInterruptibly(
      [&] {
        judged = [&]() -> Result<StepOfRank> {
          const std::lock_guard lock(Starting());
          PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings.Ring(kArrayRing));
          std::vector<SaidOfStep> said(static_cast<std::size_t>(group->size()));
          const auto words = [](SaidOfStep* first, std::size_t count) {
            return Elements{reinterpret_cast<std::byte*>(first), static_cast<std::int64_t>(2 * count),
                            ElementType::kInt64};
          };
          PENSTOCK_RETURN_IF_ERROR(rings.Wait(
              group->AllGatherEqual(words(&own, 1), words(said.data(), said.size()), {.label = label})));
          return JudgeStep(said, group->rank(), step);
        }();
      },
      [&] { rings.Cancel(); });
  NoteReaction(judged->status());
  switch (Take(*std::move(judged))) {
    case StepOfRank::kOwnBatch:
      return "own";
    case StepOfRank::kJoins:
      return "joins";
    case StepOfRank::kPads:
      return "pads";
    case StepOfRank::kEnd:
      break;
  }
  return "end";
}

// Returns when all ranks have joined. Without addresses this process is a job of one rank.
void Join(const std::vector<std::string>& addresses, int rank) {
  process::JobRings& rings = RingsOfThisProcess();
  Status status;
  RunInterruptibly(
      [&] {
        if (addresses.empty()) {
          status = rings.MakeOwnRing(kArrayRing);
          return;
        }
        status = rings.Join(addresses, rank);
        if (status.ok()) status = rings.MakeRing(kArrayRing, 0);
      },
      [&] { rings.Cancel(); });
  NoteReaction(status);
  Check(std::move(status));
}

// Makes a ring of some ranks; returns when all of them have called it.
void MakeRing(int ring, const std::vector<int>& members) {
  process::JobRings& rings = RingsOfThisProcess();
  Status status;
  RunInterruptibly([&] { status = rings.MakeSubRing(ring, members); }, [&] { rings.Cancel(); });
  Check(std::move(status));
}

void DropRing(int ring) {
  process::JobRings& rings = RingsOfThisProcess();
  const GilReleased others;
  const std::lock_guard lock(Starting());
  rings.DropSubRing(ring);
}

// [(ring, number, text)] of the operations that run now.
py::list Running() {
  py::list out;
  for (const rendezvous::WaitedOperation& one : RingsOfThisProcess().Running()) {
    out.append(py::make_tuple(one.ring, one.number, one.text));
  }
  return out;
}

// Ends the operations of all ranks with a ProgramError.
void EndOperations(const std::string& id, const std::string& message) {
  const Status why = InvalidArgument(id, message);
  RingsOfThisProcess().EndOperations(why);
}

void Tell(const std::string& key, const std::string& value) {
  process::JobRings& rings = RingsOfThisProcess();
  Status status;
  {
    const GilReleased others;
    status = rings.Tell(key, value);
  }
  Check(std::move(status));
}

// Waits until a rank has told the value.
std::string Ask(const std::string& key) {
  process::JobRings& rings = RingsOfThisProcess();
  std::optional<Result<std::string>> value;
  RunInterruptibly([&] { value = rings.Ask(key); }, [&] { rings.Cancel(); });
  NoteReaction(value->status());
  return Take(*std::move(value));
}

std::int64_t Count(const std::string& counter, std::int64_t by) {
  process::JobRings& rings = RingsOfThisProcess();
  std::optional<Result<std::int64_t>> sum;
  {
    const GilReleased others;
    sum = rings.Count(counter, by);
  }
  return Take(*std::move(sum));
}

void Leave() {
  const GilReleased others;
  const std::lock_guard lock(Starting());
  LeaveRings();
}

// Ends the wait of another thread in Join.
void CancelJoin() {
  const GilReleased others;
  RingsOfThisProcess().Cancel();
}

void StartOver(const std::string& why) {
  const GilReleased others;
  const std::lock_guard lock(Starting());
  StartRingsOver(why);
}

// (addresses of all ranks, this rank) from the launcher's environment variables; None without them.
py::object JobOfEnvironment() {
  const std::optional<rendezvous::JoinFacts> facts =
      Take(rendezvous::FactsOfEnvironment(rendezvous::ProcessEnvironment()));
  if (!facts) return py::none();
  return py::make_tuple(facts->addresses, facts->rank);
}

}  // namespace

void BindRankArrays(py::module_& m) {
  py::class_<PendingArrays>(m, "_PendingArrays")
      .def("done", &PendingArrays::done)
      .def("wait", &PendingArrays::Wait);
  const auto ring = py::arg("ring") = kArrayRing;
  m.def("arrays_join", &Join);
  m.def("arrays_leave", &Leave);
  m.def("arrays_cancel", &CancelJoin);
  m.def("arrays_start_over", &StartOver);
  m.def("arrays_make_ring", &MakeRing);
  m.def("arrays_drop_ring", &DropRing);
  m.def("arrays_running", &Running);
  m.def("arrays_end", &EndOperations);
  m.def("arrays_all_reduce", &AllReduce, py::arg("array"), py::arg("type"), py::arg("reduction"),
        py::arg("label"), py::arg("tag"), ring);
  m.def("arrays_adasum", &Adasum);
  m.def("arrays_broadcast", &Broadcast, py::arg("array"), py::arg("type"), py::arg("root"), py::arg("label"),
        py::arg("tag"), ring);
  m.def("arrays_all_gather", &AllGather, py::arg("array"), py::arg("out"), py::arg("type"), py::arg("counts"),
        py::arg("label"), py::arg("tag"), ring);
  m.def("arrays_reduce_scatter", &ReduceScatter, py::arg("array"), py::arg("out"), py::arg("type"),
        py::arg("reduction"), py::arg("label"), py::arg("tag"), ring);
  m.def("arrays_send_recv", &SendRecv, py::arg("out"), py::arg("to"), py::arg("array"), py::arg("source"),
        py::arg("label"), ring);
  m.def("arrays_barrier", &Barrier, py::arg("label"), ring);
  m.def("ranks_tell", &Tell);
  m.def("ranks_ask", &Ask);
  m.def("ranks_count", &Count);
  m.def("next_uneven_step", &NextStep);
  // (Gloo, MPI): the network backends of this build
  m.def("ranks_built", [] { return py::make_tuple(collective::HasGloo(), process::HasMpi()); });
  m.def("job_of_environment", &JobOfEnvironment);
}

}  // namespace penstock::python
