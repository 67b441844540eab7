#include "executor/collective/group/queued_group.h"

#include <algorithm>
#include <utility>

#include "executor/collective/group/check_operation.h"

namespace penstock::collective {

namespace {

// Adds a note that names the operation, unless the message already describes it.
Status WithOperation(Status status, const Operation& op) {
  const std::string text = Describe(SignatureOf(op));
  if (status.message().find(text) == std::string::npos) status.With(StrCat("in ", text));
  return status;
}

// Whether no rank ends the operation before all have begun it.
bool EndsTogether(OperationKind kind) {
  return kind == OperationKind::kAllReduce || kind == OperationKind::kReduceScatter ||
         kind == OperationKind::kAllGather || kind == OperationKind::kBarrier;
}

}  // namespace

QueuedGroup::QueuedGroup(std::unique_ptr<Backend> backend, std::string_view name)
    : backend_(std::move(backend)),
      flows_(name.empty() ? std::nullopt : std::optional<trace::FlowBase>(std::in_place, name, 0)),
      thread_([this] { ServeQueue(); }) {}

QueuedGroup::~QueuedGroup() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Completion QueuedGroup::AllReduce(Elements data, Reduction reduction, const CollectiveOptions& options) {
  return Start(
      {.kind = OperationKind::kAllReduce, .type = data.type, .reduction = reduction, .in = data, .out = data},
      options);
}

Completion QueuedGroup::ReduceScatter(ConstElements in, Elements out, Reduction reduction,
                                      const CollectiveOptions& options) {
  return Start(
      {.kind = OperationKind::kReduceScatter, .type = in.type, .reduction = reduction, .in = in, .out = out},
      options);
}

Completion QueuedGroup::AllGather(ConstElements in, std::span<const std::int64_t> counts, Elements out,
                                  const CollectiveOptions& options) {
  return Start({.kind = OperationKind::kAllGather,
                .type = in.type,
                .in = in,
                .out = out,
                .counts = {counts.begin(), counts.end()}},
               options);
}

Completion QueuedGroup::Broadcast(Elements data, int root, const CollectiveOptions& options) {
  return Start({.kind = OperationKind::kBroadcast, .type = data.type, .root = root, .in = data, .out = data},
               options);
}

Completion QueuedGroup::Reduce(Elements data, Reduction reduction, int root,
                               const CollectiveOptions& options) {
  return Start({.kind = OperationKind::kReduce,
                .type = data.type,
                .reduction = reduction,
                .root = root,
                .in = data,
                .out = data},
               options);
}

Completion QueuedGroup::Barrier(const CollectiveOptions& options) { return Start({}, options); }

Completion QueuedGroup::SendRecv(ConstElements out, int to, Elements in, int from,
                                 const CollectiveOptions& options) {
  if (to < 0 || from < 0) {
    return Completion::Of(
        InvalidArgument("E-collective-argument", "send_recv: to rank ", to, ", from rank ", from));
  }
  return Start(
      {.kind = OperationKind::kMessage, .type = out.type, .to = to, .from = from, .in = out, .out = in},
      options);
}

Completion QueuedGroup::Send(ConstElements out, int to, const CollectiveOptions& options) {
  return Start({.kind = OperationKind::kMessage, .type = out.type, .to = to, .in = out}, options);
}

Completion QueuedGroup::Recv(Elements in, int from, const CollectiveOptions& options) {
  return Start({.kind = OperationKind::kMessage, .type = in.type, .from = from, .out = in}, options);
}

std::optional<CollectiveGroup::Running> QueuedGroup::running() const {
  const std::lock_guard lock(mutex_);
  if (now_ == nullptr) return std::nullopt;
  return Running{.number = now_->number, .blocks_caller = blocked_ > 0, .text = Describe(SignatureOf(*now_))};
}

void QueuedGroup::Abort(const Status& why) {
  PENSTOCK_CHECK(!why.ok(), "a group is aborted with an error");
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok()) return;
    error_ = why;
  }
  backend_.Abort(why);
}

Completion QueuedGroup::Start(Operation op, const CollectiveOptions& options) {
  if (Status wrong = CheckOperation(op, rank(), size()); !wrong.ok()) return Completion::Of(std::move(wrong));
  if (Status wrong = backend_.Accept(op); !wrong.ok()) return Completion::Of(std::move(wrong));
  op.label = options.label;
  op.tag = options.tag;
  Completion completion;
  {
    std::unique_lock lock(mutex_);
    if (!error_.ok()) return Completion::Of(error_);
    if (op.kind != OperationKind::kMessage) op.number = ++number_;
    if (options.blocking) ++blocked_;
    if (options.blocking && !running_ && queue_.empty()) {
      running_ = true;
      lock.unlock();
      Status ended = RunOne(op);
      lock.lock();
      --blocked_;
      return Completion::Of(std::move(ended));
    }
    queue_.push_back({std::move(op), Promise()});
    completion = queue_.back().promise.completion();
  }
  changed_.notify_one();
  if (options.blocking) {
    static_cast<void>(completion.Wait());
    const std::lock_guard lock(mutex_);
    --blocked_;
  }
  return completion;
}

// The caller has set `running_`.
Status QueuedGroup::RunOne(const Operation& op) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    status = error_;
    now_ = &op;
  }
  if (status.ok()) status = tracer_ == nullptr ? backend_.Run(op) : RunTraced(op);
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    now_ = nullptr;
    if (!status.ok()) {
      if (error_.ok()) error_ = WithOperation(std::move(status), op);
      status = error_;  // an abort takes precedence over the error that it causes
    }
    if (queue_.empty()) return status;
  }
  changed_.notify_one();
  return status;
}

// Of the whole group; 0 for a message between two ranks, which the group does not number.
std::uint64_t QueuedGroup::FlowOf(const Operation& op) const {
  if (!flows_ || op.number == 0) return 0;
  return flows_->Of(trace::FlowKind::kCollective, 0, 0, op.number);
}

Status QueuedGroup::RunTraced(const Operation& op) {
  const Nanoseconds begin = tracer_->Now();
  Status status = backend_.Run(op);
  tracer_->Record({.begin_ns = begin.count(),
                   .end_ns = tracer_->Now().count(),
                   .name = tracer_->InternInPlace(NameOf(op.kind)),
                   .flow = status.ok() ? FlowOf(op) : 0,
                   .step = op.number,
                   .bytes = std::max(op.in.bytes(), op.out.bytes()),
                   .of = EndsTogether(op.kind) ? 1U : 0U,
                   .kind = trace::EventKind::kCollective});
  return status;
}

void QueuedGroup::ServeQueue() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !running_ && (!queue_.empty() || ending_); });
    if (queue_.empty()) return;
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    next.promise.Finish(RunOne(next.op));
    lock.lock();
  }
}

}  // namespace penstock::collective
