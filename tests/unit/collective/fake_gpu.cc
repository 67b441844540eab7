#include "tests/unit/collective/fake_gpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "executor/collective/group/reduce.h"
#include "framework/base/strings.h"

namespace penstock::collective {
namespace {

ElementType TypeOfNccl(int type) {
  for (const auto& [nccl, ours] :
       {std::pair(kNcclFloat16, ElementType::kFp16), std::pair(kNcclBfloat16, ElementType::kBf16),
        std::pair(kNcclFloat32, ElementType::kFp32), std::pair(kNcclFloat64, ElementType::kFp64),
        std::pair(kNcclInt32, ElementType::kInt32), std::pair(kNcclInt64, ElementType::kInt64),
        std::pair(kNcclUint8, ElementType::kUInt8)}) {
    if (type == nccl) return ours;
  }
  return ElementType::kInt8;
}

Reduction ReductionOfNccl(int op) {
  constexpr Reduction kAll[] = {Reduction::kSum, Reduction::kProduct, Reduction::kMax, Reduction::kMin,
                                Reduction::kMean};
  return kAll[op];
}

std::string TextOfElements(std::size_t count, int type) {
  return StrCat(count, ", ", ElementTypeName(TypeOfNccl(type)));
}

std::size_t BytesOf(std::size_t count, int type) { return count * SizeOf(TypeOfNccl(type)); }

void Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

std::byte* At(void* memory, std::size_t bytes) { return static_cast<std::byte*>(memory) + bytes; }

}  // namespace

FakeGpus::FakeGpus(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>());
  for (int rank = 0; rank < ranks; ++rank) {
    MakeConnections(rank);
    MakeOperations(rank);
    MakeCuda(rank);
  }
}

std::vector<std::string> FakeGpus::Calls(int rank) {
  const std::lock_guard lock(mutex_);
  return std::exchange(ranks_[static_cast<std::size_t>(rank)]->calls, {});
}

void FakeGpus::Fail(int rank, const std::string& name, int error) {
  const std::lock_guard lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)]->fails[name] = error;
}

void FakeGpus::FailLater(int rank, int error) {
  const std::lock_guard lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)]->later = error;
}

void FakeGpus::Hang() {
  const std::lock_guard lock(mutex_);
  hangs_ = true;
}

// The result of the call. The caller holds the lock.
int FakeGpus::Note(int rank, const std::string& name, const std::string& arguments) {
  Rank& self = *ranks_[static_cast<std::size_t>(rank)];
  self.calls.push_back(StrCat(name, "(", arguments, ")"));
  const auto fails = self.fails.find(name);
  if (fails == self.fails.end()) return 0;
  const int error = fails->second;
  self.fails.erase(fails);
  return error;
}

int FakeGpus::Enqueue(int rank, const std::string& name, Call call) {
  const std::lock_guard lock(mutex_);
  Rank& self = *ranks_[static_cast<std::size_t>(rank)];
  std::string arguments = TextOfElements(call.count, call.type);
  if (call.kind <= Call::kReduceScatter) {
    constexpr const char* kOps[] = {"sum", "prod", "max", "min", "avg"};
    AppendTo(arguments, StrCat(", ", kOps[call.op]));
  }
  if (call.kind == Call::kReduce || call.kind == Call::kBroadcast || call.kind >= Call::kSend)
    AppendTo(arguments, StrCat(", ", call.peer));
  if (const int error = Note(rank, name, arguments); error != 0) return error;
  if (self.depth > 0) {
    self.group.push_back(call);
    return kNcclSuccess;
  }
  self.stream.push_back({.calls = {call}});
  self.looks = 2;
  Advance();
  return kNcclInProgress;
}

// Runs the first items of all streams until none can run.
void FakeGpus::Advance() {
  for (bool went_on = true; went_on;) {
    went_on = false;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      Rank& self = *ranks_[static_cast<std::size_t>(rank)];
      if (self.stream.empty()) continue;
      Item& first = self.stream.front();
      went_on = RunCalls(rank, first) || went_on;
      if (std::any_of(first.calls.begin(), first.calls.end(), [](const Call& call) { return !call.done; }))
        continue;
      Copy(first.to, first.from, first.bytes);
      self.events_done = std::max(self.events_done, first.event);
      self.stream.pop_front();
      went_on = true;
    }
  }
}

bool FakeGpus::RunCalls(int rank, Item& item) {
  bool ran = false;
  for (std::size_t i = 0; i < item.calls.size() && !hangs_; ++i) {
    Call& call = item.calls[i];
    if (call.done) continue;
    ran = (call.kind >= Call::kSend ? RunMessage(rank, call) : RunAll(rank, i)) || ran;
  }
  return ran;
}

// Runs a call of all ranks: the at-th of the group that is first in each stream.
bool FakeGpus::RunAll(int rank, std::size_t at) {
  std::vector<Call*> all;
  for (const auto& each : ranks_) {
    if (each->stream.empty() || each->stream.front().calls.size() <= at) return false;
    all.push_back(&each->stream.front().calls[at]);
    if (all.back()->done || all.back()->kind >= Call::kSend) return false;
  }
  const Call like = *all[static_cast<std::size_t>(rank)];
  const std::size_t bytes = BytesOf(like.count, like.type), n = all.size();
  std::vector<std::string> inputs;
  for (const Call* each : all)
    inputs.emplace_back(static_cast<const char*>(each->in),
                        like.kind == Call::kReduceScatter ? bytes * n : bytes);
  std::string reduced = inputs.front();
  if (like.kind <= Call::kReduceScatter) {
    std::vector<const std::byte*> sources;
    for (const std::string& each : inputs) sources.push_back(reinterpret_cast<const std::byte*>(each.data()));
    ReduceInOrder(TypeOfNccl(like.type), ReductionOfNccl(like.op), sources,
                  reduced.size() / SizeOf(TypeOfNccl(like.type)),
                  reinterpret_cast<std::byte*>(reduced.data()));
  }
  for (std::size_t r = 0; r < n; ++r) {
    Call& call = *all[r];
    call.done = true;
    if (call.kind == Call::kAllReduce || (call.kind == Call::kReduce && static_cast<int>(r) == call.peer))
      Copy(call.out, reduced.data(), bytes);
    if (call.kind == Call::kReduceScatter) Copy(call.out, reduced.data() + r * bytes, bytes);
    if (call.kind == Call::kBroadcast)
      Copy(call.out, inputs[static_cast<std::size_t>(call.peer)].data(), bytes);
    for (std::size_t from = 0; from < n && call.kind == Call::kAllGather; ++from)
      Copy(At(call.out, from * bytes), inputs[from].data(), bytes);
  }
  return true;
}

bool FakeGpus::RunMessage(int rank, Call& call) {
  if (call.kind != Call::kSend) return false;
  Rank& other = *ranks_[static_cast<std::size_t>(call.peer)];
  if (other.stream.empty()) return false;
  for (Call& theirs : other.stream.front().calls) {
    if (theirs.kind != Call::kRecv || theirs.done || theirs.peer != rank) continue;
    Copy(theirs.out, call.in, BytesOf(call.count, call.type));
    return theirs.done = call.done = true;
  }
  return false;
}

// A call that only changes the number of held objects.
auto FakeGpus::Noted(int rank, const char* name, int holds) {
  return [this, rank, name, holds](auto...) {
    const std::lock_guard lock(mutex_);
    const int error = Note(rank, name, "");
    if (error == 0) held_ += holds;
    return error;
  };
}

void FakeGpus::MakeConnections(int rank) {
  Rank& self = *ranks_[static_cast<std::size_t>(rank)];
  NcclApi& nccl = self.api.nccl;
  nccl.get_version = [](int* version) { return *version = kNcclOldestVersion, 0; };
  nccl.get_error_string = [](int) { return "a fake error"; };
  nccl.get_last_error = [](NcclHandle) { return "no more is known"; };
  nccl.get_unique_id = [this, rank](NcclId* id) {
    const std::lock_guard lock(mutex_);
    std::strcpy(id->bytes, "the fake's");
    return Note(rank, "ncclGetUniqueId", "");
  };
  nccl.comm_init_rank_config = [this, rank, &self](NcclHandle* comm, int size, NcclId id, int place,
                                                   NcclConfig* config) {
    const std::lock_guard lock(mutex_);
    const int error =
        Note(rank, "ncclCommInitRankConfig",
             StrCat(size, ", ", id.bytes, ", ", place, config->blocking ? "" : ", not blocking"));
    if (error != 0) return error;
    *comm = &self;
    ++held_;
    ++connected_;
    self.looks = 2;
    return static_cast<int>(kNcclInProgress);
  };
  nccl.comm_get_async_error = [this, &self](NcclHandle, int* error) {
    const std::lock_guard lock(mutex_);
    const bool works = self.looks > 0 || connected_ < static_cast<int>(ranks_.size());
    if (self.looks > 0) --self.looks;
    *error = self.later != 0 ? self.later : works ? kNcclInProgress : kNcclSuccess;
    return 0;
  };
  nccl.comm_finalize = [this, rank, &self](NcclHandle) {
    const std::lock_guard lock(mutex_);
    self.looks = 2;
    const int error = Note(rank, "ncclCommFinalize", "");
    return error == 0 ? static_cast<int>(kNcclInProgress) : error;
  };
  nccl.comm_destroy = Noted(rank, "ncclCommDestroy", -1);
  nccl.comm_abort = [this, rank, &self](NcclHandle) {
    const std::lock_guard lock(mutex_);
    self.stream.clear();
    --held_;
    return Note(rank, "ncclCommAbort", "");
  };
  nccl.group_start = [this, rank, &self] {
    const std::lock_guard lock(mutex_);
    ++self.depth;
    return Note(rank, "ncclGroupStart", "");
  };
  nccl.group_end = [this, rank, &self] {
    const std::lock_guard lock(mutex_);
    --self.depth;
    if (const int error = Note(rank, "ncclGroupEnd", ""); error != 0) return error;
    self.stream.push_back({.calls = std::exchange(self.group, {})});
    self.looks = 2;
    Advance();
    return static_cast<int>(kNcclInProgress);
  };
}

void FakeGpus::MakeOperations(int rank) {
  NcclApi& nccl = ranks_[static_cast<std::size_t>(rank)]->api.nccl;
  nccl.all_reduce = [this, rank](const void* in, void* out, std::size_t count, int type, int op, NcclHandle,
                                 CudaStream) {
    return Enqueue(rank, "ncclAllReduce", {Call::kAllReduce, in, out, count, type, op});
  };
  nccl.reduce_scatter = [this, rank](const void* in, void* out, std::size_t count, int type, int op,
                                     NcclHandle, CudaStream) {
    return Enqueue(rank, "ncclReduceScatter", {Call::kReduceScatter, in, out, count, type, op});
  };
  nccl.all_gather = [this, rank](const void* in, void* out, std::size_t count, int type, NcclHandle,
                                 CudaStream) {
    return Enqueue(rank, "ncclAllGather", {Call::kAllGather, in, out, count, type});
  };
  nccl.broadcast = [this, rank](const void* in, void* out, std::size_t count, int type, int root, NcclHandle,
                                CudaStream) {
    return Enqueue(rank, "ncclBroadcast", {Call::kBroadcast, in, out, count, type, 0, root});
  };
  nccl.reduce = [this, rank](const void* in, void* out, std::size_t count, int type, int op, int root,
                             NcclHandle, CudaStream) {
    return Enqueue(rank, "ncclReduce", {Call::kReduce, in, out, count, type, op, root});
  };
  nccl.send = [this, rank](const void* in, std::size_t count, int type, int to, NcclHandle, CudaStream) {
    return Enqueue(rank, "ncclSend", {Call::kSend, in, nullptr, count, type, 0, to});
  };
  nccl.recv = [this, rank](void* out, std::size_t count, int type, int from, NcclHandle, CudaStream) {
    return Enqueue(rank, "ncclRecv", {Call::kRecv, nullptr, out, count, type, 0, from});
  };
}

void FakeGpus::MakeCuda(int rank) {
  Rank& self = *ranks_[static_cast<std::size_t>(rank)];
  CudaApi& cuda = self.api.cuda;
  cuda.get_error_string = [](int) { return "a fake error of CUDA"; };
  cuda.get_device_count = [this](int* count) { return *count = static_cast<int>(ranks_.size()), 0; };
  cuda.set_device = [this, rank](int device) {
    const std::lock_guard lock(mutex_);
    return Note(rank, "cudaSetDevice", StrCat(device));
  };
  cuda.malloc = [this, rank](void** memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const int error = Note(rank, "cudaMalloc", StrCat(bytes)); error != 0) return error;
    ++held_;
    *memory = std::malloc(bytes);
    return 0;
  };
  cuda.free = [this, rank](void* memory) {
    const std::lock_guard lock(mutex_);
    std::free(memory);
    --held_;
    return Note(rank, "cudaFree", "");
  };
  cuda.memcpy_async = [this, rank, &self](void* to, const void* from, std::size_t bytes, int kind,
                                          CudaStream) {
    const std::lock_guard lock(mutex_);
    const char* const way = kind == kCudaHostToDevice ? "to the GPU, " : "to the host, ";
    if (const int error = Note(rank, "cudaMemcpyAsync", StrCat(way, bytes)); error != 0) return error;
    self.stream.push_back({.calls = {}, .to = to, .from = from, .bytes = bytes});
    Advance();
    return 0;
  };
  cuda.stream_create = [this, rank, &self](CudaStream* stream, unsigned flags) {
    const std::lock_guard lock(mutex_);
    *stream = &self.stream;
    ++held_;
    return Note(rank, "cudaStreamCreateWithFlags", StrCat(flags));
  };
  cuda.stream_synchronize = Noted(rank, "cudaStreamSynchronize", 0);
  cuda.stream_destroy = Noted(rank, "cudaStreamDestroy", -1);
  cuda.event_create = [this, rank, &self](CudaEvent* event, unsigned flags) {
    const std::lock_guard lock(mutex_);
    *event = &self.events;
    ++held_;
    return Note(rank, "cudaEventCreateWithFlags", StrCat(flags));
  };
  cuda.event_record = [this, rank, &self](CudaEvent, CudaStream) {
    const std::lock_guard lock(mutex_);
    if (const int error = Note(rank, "cudaEventRecord", ""); error != 0) return error;
    self.stream.push_back({.calls = {}, .event = ++self.events});
    Advance();
    return 0;
  };
  cuda.event_query = [this, &self](CudaEvent) {
    const std::lock_guard lock(mutex_);
    return self.events_done == self.events ? static_cast<int>(kCudaSuccess) : static_cast<int>(kCudaNotReady);
  };
  cuda.event_destroy = Noted(rank, "cudaEventDestroy", -1);
}

}  // namespace penstock::collective
