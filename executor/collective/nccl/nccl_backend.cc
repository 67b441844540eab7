#include "executor/collective/nccl/nccl_backend.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/collective/group/plain_data.h"
#include "framework/base/log.h"

namespace penstock::collective {
namespace {

constexpr char kNcclLost[] = "E-collective-peer-lost", kNcclMismatch[] = "E-collective-mismatch";
constexpr char kRefused[] = "E-collective-nccl";
constexpr char kWatch[] = "which ends with its sender";
constexpr char kDone[] = "it has no more operations for NCCL";
constexpr std::size_t kAligned = 256;  // as cudaMalloc aligns

int TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFp16:
      return kNcclFloat16;
    case ElementType::kBf16:
      return kNcclBfloat16;
    case ElementType::kFp32:
      return kNcclFloat32;
    case ElementType::kFp64:
      return kNcclFloat64;
    case ElementType::kInt32:
      return kNcclInt32;
    case ElementType::kInt64:
      return kNcclInt64;
    case ElementType::kUInt8:
      return kNcclUint8;
    case ElementType::kInt8:
      return kNcclInt8;
  }
  return kNcclUint8;
}

int ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return kNcclSum;
    case Reduction::kMean:
      return kNcclAvg;
    case Reduction::kProduct:
      return kNcclProd;
    case Reduction::kMax:
      return kNcclMax;
    case Reduction::kMin:
      return kNcclMin;
  }
  return kNcclSum;
}

// What each rank tells all others before they connect. Plain data.
struct Ready {
  NcclId id;  // rank 0's
  char error[600] = {};
};

template <typename T>
ConstElements BytesIn(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof(T), ElementType::kUInt8};
}
template <typename T>
Elements BytesOut(T* values, std::size_t count) {
  return {reinterpret_cast<std::byte*>(values), static_cast<std::int64_t>(count * sizeof(T)),
          ElementType::kUInt8};
}

}  // namespace

NcclBackend::NcclBackend(const GpuApi& api, NcclRendezvous rendezvous)
    : api_(api),
      report_after_(rendezvous.report_after),
      stream_(api, rendezvous.device),
      times_(rendezvous.report_after),
      agree_(std::move(rendezvous.agree)),
      watch_(std::move(rendezvous.watch)) {
  if (size() == 1) return;
  const int before = (rank() + size() - 1) % size();
  watch_->Recv({&word_, 1, ElementType::kUInt8}, before, {.label = kWatch})
      .Then([this](const Status& status) {
        if (status.ok() || status.message().find(kDone) != std::string::npos) return;
        const std::lock_guard lock(mutex_);
        if (!heard_.ok()) return;
        heard_ = AsGiven(status);
        stopped_ = true;
      });
}

NcclBackend::~NcclBackend() {
  if (size() > 1) watch_->Abort(Unavailable("E-collective-peer-left", kDone));
  watch_.reset();
}

Status NcclBackend::Connect() {
  Ready mine;
  Status status = stream_.Prepare();
  if (status.ok() && rank() == 0) {
    const int error = api_.nccl.get_unique_id(&mine.id);
    if (error != kNcclSuccess)
      status = FailedPrecondition(kRefused, "ncclGetUniqueId failed: ", api_.nccl.get_error_string(error));
  }
  WriteText(mine.error, status.message());
  std::vector<Ready> all(static_cast<std::size_t>(size()));
  PENSTOCK_RETURN_IF_ERROR(
      agree_->AllGatherEqual(BytesIn(mine), BytesOut(all.data(), all.size()), {.blocking = true}).Wait());
  for (int each = 0; each < size(); ++each) {
    const std::string error = ReadText(all[static_cast<std::size_t>(each)].error);
    if (!error.empty()) return FailedPrecondition(kRefused, "rank ", each, ": ", error);
  }
  const auto stop = [this] { return Heard(); };
  status = stream_.Connect(all.front().id, rank(), size(), stop);
  if (status.ok()) return status;
  const Status named = std::move(status).In(StrCat("rank ", rank()));
  return Fail(named);
}

Status NcclBackend::Run(const Operation& op, Agreement& agreement) {
  if (op.kind == OperationKind::kMessage) {
    PENSTOCK_RETURN_IF_ERROR(AgreeOnMessage(op, agreement));
  } else {
    what_ = agreement.what();
    PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  }
  if (op.in.bytes() == 0 && op.out.bytes() == 0) return OkStatus();
  began_ = SystemClock().Now();
  times_ = observe::ReportTimes(report_after_);
  Status status = Exchange(op);
  return status.ok() ? status : Fail(Explained(status));
}

// Prefers the error from `watch`, which says more than NCCL's error and may come a little later: waits up to
// 0.5 s for it if NCCL reports a lost rank.
Status NcclBackend::Explained(const Status& status) const {
  constexpr int kMostLooks = 50;
  for (int i = 0; status.id() == kNcclLost && Heard().ok() && i < kMostLooks; ++i) poll(nullptr, 0, 10);
  const Status heard = Heard();
  Status why = heard.ok() ? status : heard;
  const std::string operation = Describe(what_);
  const bool named = why.id() == kNcclMismatch || why.message().find(operation) != std::string::npos;
  return named ? why : std::move(why).In(StrCat(operation, " of rank ", rank()));
}

void NcclBackend::Abort(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (heard_.ok()) heard_ = why;
    stopped_ = true;
  }
  agree_->Abort(why);
  watch_->Abort(why);
}

Result<std::span<const Signature>> NcclBackend::ExchangeSignatures(const Signature& mine) {
  signatures_.resize(static_cast<std::size_t>(size()));
  const std::string label = Describe(mine);
  const Status status = agree_
                            ->AllGatherEqual(BytesIn(mine), BytesOut(signatures_.data(), signatures_.size()),
                                             {.label = label, .blocking = true})
                            .Wait();
  if (!status.ok()) return Fail(AsGiven(status));
  return std::span<const Signature>(signatures_);
}

// Only the receiver compares the signatures. The sender learns of a mismatch while NCCL waits for the
// receiver.
Status NcclBackend::AgreeOnMessage(const Operation& op, Agreement& agreement) {
  const Signature sent = SignatureOfSent(op, rank()), wanted = SignatureOfReceived(op, rank());
  what_ = op.to >= 0 ? sent : wanted;
  Signature theirs;
  const std::string label = Describe(what_);
  const CollectiveOptions options{.label = label, .blocking = true};
  const Elements told = BytesOut(&theirs, 1);
  const Status status = (op.from < 0 ? agree_->Send(BytesIn(sent), op.to, options)
                         : op.to < 0 ? agree_->Recv(told, op.from, options)
                                     : agree_->SendRecv(BytesIn(sent), op.to, told, op.from, options))
                            .Wait();
  if (!status.ok()) return Fail(AsGiven(status));
  return op.from < 0 ? OkStatus() : agreement.Accept(theirs, wanted);
}

std::size_t NcclBackend::PlaceOfInput(const Operation& op) const {
  if (op.kind != OperationKind::kAllGather) return 0;
  std::size_t before = 0;
  for (int each = 0; each < rank(); ++each)
    before += static_cast<std::size_t>(op.counts[static_cast<std::size_t>(each)]);
  return before * SizeOf(op.type);
}

std::size_t NcclBackend::PlaceOfOutput(const Operation& op) const {
  if (op.kind == OperationKind::kReduceScatter) return static_cast<std::size_t>(rank()) * op.out.bytes();
  if (op.kind != OperationKind::kMessage) return 0;
  return (op.in.bytes() + kAligned - 1) / kAligned * kAligned;
}

Status NcclBackend::Exchange(const Operation& op) {
  PENSTOCK_RETURN_IF_ERROR(stream_.UseDevice());
  const std::size_t in = PlaceOfInput(op), out = PlaceOfOutput(op);
  PENSTOCK_ASSIGN_OR_RETURN(std::byte* const gpu,
                            stream_.Memory(std::max(in + op.in.bytes(), out + op.out.bytes())));
  const bool at_root = op.root == rank();
  const bool reads = op.kind != OperationKind::kBroadcast || at_root;
  const bool writes =
      op.kind == OperationKind::kReduce ? at_root : op.kind != OperationKind::kBroadcast || !at_root;
  if (reads) PENSTOCK_RETURN_IF_ERROR(stream_.ToGpu(gpu + in, op.in.data, op.in.bytes()));
  PENSTOCK_RETURN_IF_ERROR(Enqueue(op, gpu));
  if (writes) PENSTOCK_RETURN_IF_ERROR(stream_.ToHost(op.out.data, gpu + out, op.out.bytes()));
  return stream_.Finish([this] { return ReportOrStop(); });
}

Status NcclBackend::Enqueue(const Operation& op, std::byte* gpu) {
  const int type = TypeOf(op.type), reduction = ReductionOf(op.reduction);
  const auto count = static_cast<std::size_t>(op.in.count);
  const auto stop = [this] { return ReportOrStop(); };
  const NcclHandle comm = stream_.comm();
  const CudaStream stream = stream_.stream();
  switch (op.kind) {
    case OperationKind::kAllReduce:
      return stream_.Call(
          "ncclAllReduce",
          [&] { return api_.nccl.all_reduce(gpu, gpu, count, type, reduction, comm, stream); }, stop);
    case OperationKind::kReduce:
      return stream_.Call(
          "ncclReduce",
          [&] { return api_.nccl.reduce(gpu, gpu, count, type, reduction, op.root, comm, stream); }, stop);
    case OperationKind::kReduceScatter:
      return stream_.Call(
          "ncclReduceScatter",
          [&] {
            return api_.nccl.reduce_scatter(gpu, gpu + PlaceOfOutput(op),
                                            static_cast<std::size_t>(op.out.count), type, reduction, comm,
                                            stream);
          },
          stop);
    case OperationKind::kBroadcast:
      return stream_.Call(
          "ncclBroadcast", [&] { return api_.nccl.broadcast(gpu, gpu, count, type, op.root, comm, stream); },
          stop);
    case OperationKind::kAllGather:
      return AllGather(op, gpu);
    case OperationKind::kMessage:
      return Message(op, gpu);
    case OperationKind::kBarrier:
      return OkStatus();  // all ranks have met in the agreement
  }
  return InternalError("E-collective-kind", "no such operation");
}

// If the parts differ in size, each rank broadcasts its part, in one group of calls.
Status NcclBackend::AllGather(const Operation& op, std::byte* gpu) {
  const int type = TypeOf(op.type);
  const auto stop = [this] { return ReportOrStop(); };
  const auto differs = [&](std::int64_t count) { return count != op.in.count; };
  if (std::none_of(op.counts.begin(), op.counts.end(), differs)) {
    return stream_.Call(
        "ncclAllGather",
        [&] {
          return api_.nccl.all_gather(gpu + PlaceOfInput(op), gpu, static_cast<std::size_t>(op.in.count),
                                      type, stream_.comm(), stream_.stream());
        },
        stop);
  }
  const auto broadcasts = [&] {
    Status status;
    std::byte* part = gpu;
    for (int root = 0; root < size() && status.ok(); ++root) {
      const auto count = static_cast<std::size_t>(op.counts[static_cast<std::size_t>(root)]);
      if (count == 0) continue;
      status = stream_.Add("ncclBroadcast", api_.nccl.broadcast(part, part, count, type, root, stream_.comm(),
                                                                stream_.stream()));
      part += count * SizeOf(op.type);
    }
    return status;
  };
  return stream_.Group(broadcasts, stop);
}

Status NcclBackend::Message(const Operation& op, std::byte* gpu) {
  const auto both = [&]() -> Status {
    if (op.in.bytes() > 0) {
      PENSTOCK_RETURN_IF_ERROR(stream_.Add(
          "ncclSend", api_.nccl.send(gpu, static_cast<std::size_t>(op.in.count), TypeOf(op.in.type), op.to,
                                     stream_.comm(), stream_.stream())));
    }
    if (op.out.bytes() == 0) return OkStatus();
    return stream_.Add("ncclRecv",
                       api_.nccl.recv(gpu + PlaceOfOutput(op), static_cast<std::size_t>(op.out.count),
                                      TypeOf(op.out.type), op.from, stream_.comm(), stream_.stream()));
  };
  return stream_.Group(both, [this] { return ReportOrStop(); });
}

Status NcclBackend::AsGiven(const Status& status) {
  for (const auto& [id, code] : {std::pair(kNcclLost, StatusCode::kUnavailable),
                                 std::pair(kNcclMismatch, StatusCode::kInvalidArgument)}) {
    const std::string mark = StrCat(id, ": ");
    const std::size_t at = status.message().find(mark);
    if (at != std::string::npos) return Status(code, id, status.message().substr(at + mark.size()));
  }
  return status;
}

Status NcclBackend::Fail(const Status& why) {
  const Status told(why.code(), why.id(), StrCat(why.id(), ": ", why.message()));
  agree_->Abort(told);
  watch_->Abort(told);
  stream_.Abort();
  return why;
}

Status NcclBackend::Heard() const {
  if (!stopped_) return OkStatus();
  const std::lock_guard lock(mutex_);
  return heard_;
}

Status NcclBackend::ReportOrStop() {
  PENSTOCK_RETURN_IF_ERROR(Heard());
  if (report_after_ <= Nanoseconds(0)) return OkStatus();
  const Nanoseconds lasted = SystemClock().Now() - began_;
  if (lasted < times_.next()) return OkStatus();
  times_.Pass();
  Log(LogSeverity::kWarning,
      StrCat("waiting ", WholeSeconds(lasted), " s in ", Describe(what_), " of rank ", rank(), " for NCCL"));
  return OkStatus();
}

}  // namespace penstock::collective
