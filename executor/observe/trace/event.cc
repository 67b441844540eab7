#include "executor/observe/trace/event.h"

namespace penstock::trace {

const char* NameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kNone:
      return "none";
    case EventKind::kOp:
      return "op";
    case EventKind::kRun:
      return "run";
    case EventKind::kWait:
      return "wait";
    case EventKind::kSend:
      return "send";
    case EventKind::kAsk:
      return "ask";
    case EventKind::kArrived:
      return "arrived";
    case EventKind::kMerge:
      return "merge";
    case EventKind::kUpdate:
      return "update";
    case EventKind::kReply:
      return "reply";
    case EventKind::kSave:
      return "save";
    case EventKind::kCollective:
      return "collective";
  }
  return "";
}

}  // namespace penstock::trace
