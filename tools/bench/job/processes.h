// Processes of a bench on this host.
//
//   const std::string address = StrCat("127.0.0.1:", FreePort());
//   const pid_t server = Fork([&] { Serve(address); });      // it ends with this process at the latest
//   const double before = CpuSeconds(server);
#pragma once

#include <sys/types.h>

#include <functional>

namespace penstock::bench {

// Nobody listens on it now.
int FreePort();
// Before this process has threads. The child ends with status 0 when `work` returns.
pid_t Fork(const std::function<void()>& work);
// Of all its threads, user and system; 0 of one that is gone.
double CpuSeconds(pid_t process);

}  // namespace penstock::bench
