// Starts and measures the processes of a benchmark on this host.
//
//   const std::string address = StrCat("127.0.0.1:", FreePort());
//   const pid_t server = Fork([&] { Serve(address); });      // ends with this process at the latest
//   const double before = CpuSeconds(server);
#pragma once

#include <sys/types.h>

#include <functional>

namespace penstock::bench {

// A TCP port on which no process listens at the moment.
int FreePort();
// Forks a child that runs `work` and exits with status 0 when it returns. Call it before this process starts
// threads.
pid_t Fork(const std::function<void()>& work);
// User and system CPU seconds of all threads of `process`; 0 if it has ended.
double CpuSeconds(pid_t process);

}  // namespace penstock::bench
