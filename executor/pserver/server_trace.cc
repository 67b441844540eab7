#include "executor/pserver/server_trace.h"

#include "framework/base/strings.h"

namespace penstock::pserver {

ServerTrace::ServerTrace(trace::Tracer* tracer, const roles::PserverFacts& facts) : tracer_(tracer) {
  if (tracer_ == nullptr) return;
  lr_block_ = tracer_->Intern("learning rate");
  for (int t = 0; t < facts.trainers; ++t) {
    trainers_.push_back({tracer_->Intern(StrCat("trainer ", t)),
                         trace::FlowBase(facts.address, static_cast<std::uint64_t>(t))});
  }
  for (const roles::ServedParam& served : facts.params) {
    Param& param = params_.emplace_back();
    param.name = tracer_->Intern(served.param.name);
    param.hash = Fnv1a64(served.param.name);
    param.is_held = served.start;
    for (int t = 0; t < facts.trainers; ++t)
      param.pushed.push_back(Fnv1a64(served.start ? served.param.name : served.GradientOf(t)));
  }
}

void ServerTrace::AddKey(const std::string& name) {
  if (tracer_ == nullptr) return;
  Param& param = params_.emplace_back();
  param.name = tracer_->Intern(name);
  param.hash = Fnv1a64(name);
  param.pushed.assign(trainers_.size(), Fnv1a64(name));
}

void ServerTrace::Merged(const MergeAction& merge, std::uint64_t bytes, Nanoseconds begin) const {
  if (tracer_ == nullptr) return;
  const Param& param = At(merge.param);
  const std::uint64_t pushed =
      merge.initial ? param.hash : param.pushed[static_cast<std::size_t>(merge.trainer)];
  const auto chunk = static_cast<std::uint64_t>(merge.chunk);
  // Without parts it stands for a trainer that sends nothing any more.
  const std::uint64_t flow =
      merge.parts.empty() ? 0
                          : From(merge.trainer).base.Of(trace::FlowKind::kPush, pushed, chunk, merge.step);
  tracer_->Record({.begin_ns = begin.count(),
                   .end_ns = tracer_->Now().count(),
                   .name = param.name,
                   .peer = From(merge.trainer).name,
                   .flow = flow,
                   .step = merge.step,
                   .bytes = bytes,
                   .at = static_cast<std::uint32_t>(merge.chunk),
                   .of = merge.initial || param.is_held ? 1U : 0U,
                   .kind = trace::EventKind::kMerge});
}

void ServerTrace::Ran(const RunAction& run, Nanoseconds begin) const {
  if (tracer_ == nullptr) return;
  tracer_->Record({.begin_ns = begin.count(),
                   .end_ns = tracer_->Now().count(),
                   .name = run.param < 0 ? lr_block_ : At(run.param).name,
                   .step = run.step,
                   .at = static_cast<std::uint32_t>(run.chunk),
                   .kind = trace::EventKind::kUpdate});
}

void ServerTrace::Saved(const SaveEvent& save, Nanoseconds begin) const {
  if (tracer_ == nullptr) return;
  tracer_->Record({.begin_ns = begin.count(),
                   .end_ns = tracer_->Now().count(),
                   .name = At(save.param).name,
                   .peer = From(save.trainer).name,
                   .step = save.version,
                   .kind = trace::EventKind::kSave});
}

void ServerTrace::Replies(int trainer, ChunkId at, std::uint64_t version, std::uint64_t bytes) const {
  if (tracer_ == nullptr) return;
  const std::int64_t now = tracer_->Now().count();
  const auto chunk = static_cast<std::uint32_t>(at.chunk);
  tracer_->Record({.begin_ns = now,
                   .end_ns = now,
                   .name = At(at.param).name,
                   .peer = From(trainer).name,
                   .flow = From(trainer).base.Of(trace::FlowKind::kPull, At(at.param).hash, chunk, version),
                   .step = version,
                   .bytes = bytes,
                   .at = chunk,
                   .kind = trace::EventKind::kReply});
}

void ServerTrace::RepliesRows(int trainer, const RowsEvent& asked, std::string_view name,
                              std::uint64_t bytes) const {
  if (tracer_ == nullptr) return;
  const std::int64_t now = tracer_->Now().count();
  const trace::FlowKind kind = asked.changed ? trace::FlowKind::kChanged : trace::FlowKind::kRows;
  const auto part = static_cast<std::uint32_t>(asked.changed ? 0 : asked.request);
  tracer_->Record({.begin_ns = now,
                   .end_ns = now,
                   .name = At(asked.param).name,
                   .peer = From(trainer).name,
                   .flow = From(trainer).base.Of(kind, Fnv1a64(name), part, asked.version),
                   .step = asked.version,
                   .bytes = bytes,
                   .at = part,
                   .kind = trace::EventKind::kReply});
}

}  // namespace penstock::pserver
