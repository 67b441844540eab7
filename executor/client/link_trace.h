// What a link tells the process's trace: the messages that it is about to send, and the answers that have
// arrived. Does nothing without a tracer.
//
//   const LinkTrace trace(observer == nullptr ? nullptr : observer->tracer(), "10.0.0.1:6174", trainer);
//   const LinkTrace::Name w = trace.NameOf("w@GRAD");             // at set-up
//   if (trace.on()) trace.Sends(w, chunk, step, bytes);           // before the first part is sent
#pragma once

#include <cstdint>
#include <string>

#include "executor/observe/trace/flow.h"
#include "executor/observe/trace/tracer.h"
#include "framework/base/strings.h"

namespace penstock::client {

class LinkTrace {
 public:
  struct Name {
    trace::NameId id = 0;
    std::uint64_t hash = 0;
  };

  LinkTrace(trace::Tracer* tracer, const std::string& address, std::uint32_t trainer)
      : tracer_(tracer),
        peer_(tracer == nullptr ? 0 : tracer->Intern(StrCat("pserver ", address))),
        base_(address, trainer) {}

  bool on() const { return tracer_ != nullptr; }
  Name NameOf(const std::string& name) const {
    return tracer_ == nullptr ? Name{} : Name{tracer_->Intern(name), Fnv1a64(name)};
  }

  void Sends(const Name& what, std::uint32_t chunk, std::uint64_t step, std::uint64_t bytes) const {
    Record(trace::EventKind::kSend, trace::FlowKind::kPush, what, chunk, step, bytes);
  }
  // `part`: a chunk, or the number of a request for rows.
  void Asks(trace::FlowKind flow, const Name& what, std::uint32_t part, std::uint64_t version) const {
    Record(trace::EventKind::kAsk, flow, what, part, version, 0);
  }
  void Arrived(trace::FlowKind flow, const Name& what, std::uint32_t part, std::uint64_t version,
               std::uint64_t bytes) const {
    Record(trace::EventKind::kArrived, flow, what, part, version, bytes);
  }

 private:
  void Record(trace::EventKind kind, trace::FlowKind flow, const Name& what, std::uint32_t part,
              std::uint64_t step, std::uint64_t bytes) const {
    if (tracer_ == nullptr) return;
    const std::int64_t now = tracer_->Now().count();
    tracer_->Record({.begin_ns = now,
                     .end_ns = now,
                     .name = what.id,
                     .peer = peer_,
                     .flow = base_.Of(flow, what.hash, part, step),
                     .step = step,
                     .bytes = bytes,
                     .at = part,
                     .kind = kind});
  }

  trace::Tracer* tracer_;
  trace::NameId peer_;
  trace::FlowBase base_;
};

}  // namespace penstock::client
