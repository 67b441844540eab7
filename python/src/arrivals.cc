#include "python/src/arrivals.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "framework/runtime/rpc_client.h"
#include "python/src/errors.h"
#include "python/src/runner.h"

namespace penstock::python {
namespace {

std::atomic<RpcClient*> client_of_process = nullptr;
std::atomic<pid_t> set_by = 0;

// A forked process has no thread that receives.
RpcClient* Client() { return set_by == getpid() ? client_of_process.load() : nullptr; }

}  // namespace

void SetArrivals(RpcClient* client) {
  client_of_process = client;
  set_by = getpid();
}

void AwaitArrival(const Variable& variable) {
  RpcClient* const client = Client();
  if (client == nullptr || !client->HasLeftInto(variable)) return;
  const Variable held = variable;  // another thread may erase it meanwhile
  Status status;
  RunInterruptibly([&] { status = client->CompleteLeftInto(held); }, [&] { client->Cancel(); });
  Check(std::move(status));
}

void AwaitAllArrivals() {
  RpcClient* const client = Client();
  if (client == nullptr || !client->HasLeft()) return;
  Status status;
  RunInterruptibly([&] { status = client->CompleteLeft(); }, [&] { client->Cancel(); });
  Check(std::move(status));
}

}  // namespace penstock::python
