// The settings of a Session: this trainer's identity, its deadlines, and its callbacks.
#pragma once

#include <functional>
#include <string>

#include "executor/observe/observer.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::client {

// The step with which a trainer begins, of those that its servers name in their first answers. They name
// different ones where a new process takes the place of one that has died within a step.
enum class Joins {
  kAtZero,     // a new process takes nobody's place
  kAtLowest,   // it repeats that step where servers have its gradients already (wait)
  kAtHighest,  // it takes no part in earlier ones (shrink)
};

struct SessionOptions {
  std::string job;
  // The folder in which servers save tables, if known: paths in it are sent relative to it.
  std::string checkpoint_folder;
  int trainers = 0;               // their number, if this process knows it; else 0
  std::uint64_t incarnation = 1;  // larger at each start of this trainer
  Nanoseconds resend_after = std::chrono::seconds(30);
  Nanoseconds reconnect_after = std::chrono::milliseconds(200);
  // A server that has not answered within this time fails the job.
  Nanoseconds connect_deadline = std::chrono::minutes(15);
  // How long a server may be out of reach after its welcome before it counts as gone. It is gone at once if
  // nothing listens at its address any more. 0: a connection that breaks is the end.
  Nanoseconds reconnect_deadline{0};
  // If not kAtZero: Session::Join must be true before the first pull.
  Joins joins = Joins::kAtZero;
  // Called with that step; must not call back; may be empty.
  std::function<void(std::uint64_t)> on_joined;
  // Most bytes of gradients that are kept for a server which may be started again by itself. More wait until
  // a checkpoint of that server has them; it makes one when half of them are reached.
  std::size_t retention_bytes = std::size_t{1} << 30;
  // Most bytes of pushes of keys that are sent to a server and not acknowledged: others wait, and go by their
  // priority.
  std::size_t push_window = std::size_t{8} << 20;
  std::string process;  // DescribeThisProcess, for servers of this host; empty: unknown
  std::function<void(const std::string&)> report = [](const std::string&) {};  // a line for the user
  // Called when the result of a Done query, of AllClosed or of status has changed, not for other messages;
  // must not call back.
  std::function<void()> on_change = [] {};
  // Called when a connection was lost; Tick should then be called every few milliseconds for a second. Must
  // not call back; may be empty.
  std::function<void()> on_lost;
  // Called when the failure of a peer, not of this trainer, ends the job; must not call back; may be empty.
  std::function<void(const Status&)> on_reaction;
  Clock* clock = &SystemClock();
  observe::Observer* observer = nullptr;  // records and counts what this trainer does; may be null
};

}  // namespace penstock::client
