#include "tools/bench/job/processes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "framework/base/check.h"

namespace penstock::bench {

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) == 0 &&
                     bind(fd, any, size) == 0 && getsockname(fd, any, &size) == 0;
  PENSTOCK_CHECK(bound, "no free port");
  return ntohs(address.sin_port);
}

pid_t Fork(const std::function<void()>& work) {
  const pid_t child = fork();
  PENSTOCK_CHECK(child >= 0, "no process more");
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  work();
  _exit(0);
}

double CpuSeconds(pid_t process) {
  clockid_t clock = {};
  timespec now = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace penstock::bench
