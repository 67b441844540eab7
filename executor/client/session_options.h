// What a Session is told once: who this trainer is, how patient it is, and whom it tells what.
#pragma once

#include <functional>
#include <string>

#include "executor/observe/observer.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::client {

struct SessionOptions {
  std::string job;
  // Where servers save tables, if this process knows: paths in it are told as names in it.
  std::string checkpoint_folder;
  int trainers = 0;               // as this process was told; 0: it was not
  std::uint64_t incarnation = 1;  // larger at each start of this trainer
  Nanoseconds resend_after = std::chrono::seconds(30);
  Nanoseconds reconnect_after = std::chrono::milliseconds(200);
  // A server that has not answered by then fails the job: it is not coming, or has been and gone.
  Nanoseconds connect_deadline = std::chrono::minutes(10);
  std::function<void(const std::string&)> report = [](const std::string&) {};  // a line for the user
  // Called when an answer that may be waited for (a Done question, AllClosed, status) has changed, and not
  // for other messages; must not call back.
  std::function<void()> on_change = [] {};
  // Called when a peer's failure, not one of this trainer's, ends the job; must not call back; may be empty.
  std::function<void(const Status&)> on_reaction;
  Clock* clock = &SystemClock();
  observe::Observer* observer = nullptr;  // records and counts what this trainer does; null: nobody does
};

}  // namespace penstock::client
