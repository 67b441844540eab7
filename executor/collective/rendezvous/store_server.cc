#include "executor/collective/rendezvous/store_server.h"

#include <utility>

namespace penstock::rendezvous {

Result<std::unique_ptr<StoreServer>> StoreServer::Listen(Transport& transport, const std::string& job,
                                                         const std::vector<std::string>& addresses,
                                                         std::function<void(const std::string&)> report) {
  std::unique_ptr<StoreServer> server(new StoreServer(job, addresses, std::move(report)));
  PENSTOCK_ASSIGN_OR_RETURN(server->listener_, transport.Listen(addresses.front(), *server));
  return server;
}

StoreServer::~StoreServer() { listener_.reset(); }

void StoreServer::Refuse(const Connection* from, const Status& why) {
  rank_of_[from] = kRefused;
  strangers_.Report(StrCat("refused a process: ", why.message(), "   [", why.id(), "]"));
}

void StoreServer::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  Result<StoreMessage> read = Decode(message);
  const std::lock_guard lock(mutex_);
  const auto known = rank_of_.find(from.get());
  const std::optional<int> rank = known == rank_of_.end() ? std::nullopt : std::optional(known->second);
  if (rank == kRefused) return;
  if (!read.ok()) {
    if (rank) Lose(*rank, read.status());
    Refuse(from.get(), read.status());
    from->Abort();
  } else if (!rank) {
    Enter(from, *std::move(read));
  } else if (read->verb != StoreVerb::kHello) {  // a second hello is ignored
    Send(table_.Take(*rank, *std::move(read)));
  }
  changed_.notify_all();
}

void StoreServer::Enter(const std::shared_ptr<Connection>& from, StoreMessage message) {
  const Result<Hello> hello = ReadHello(message);
  if (!hello.ok()) {
    Refuse(from.get(), hello.status());
    return from->Abort();
  }
  if (const Status entered = table_.Enter(*hello); !entered.ok()) {
    from->Send(Encode(WriteFailed(StoreVerb::kFailed, message.id, entered)));
    Refuse(from.get(), entered);
    return from->Close();
  }
  from->Admit();
  from->Send(Encode({.verb = StoreVerb::kAnswer}));
  rank_of_[from.get()] = hello->rank;
  connections_[hello->rank] = from;
  Send(table_.Take(hello->rank, std::move(message)));
}

void StoreServer::Lose(int rank, const Status& why) {
  connections_.erase(rank);
  Send(table_.Lose(rank, why));
}

void StoreServer::Send(const StoreTable::Answers& answers) {
  for (const StoreTable::Answer& answer : answers) {
    const auto at = connections_.find(answer.rank);
    if (at != connections_.end()) at->second->Send(Encode(answer.message));
  }
}

void StoreServer::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  const std::lock_guard lock(mutex_);
  const auto known = rank_of_.find(from.get());
  if (known == rank_of_.end()) return;
  // A rank that leaves in order says so first. If a connection just ends, its process has ended.
  if (known->second != kRefused)
    Lose(known->second, why.ok() ? Unavailable("E-rendezvous-gone", "its connection was closed") : why);
  rank_of_.erase(known);
  changed_.notify_all();
}

void StoreServer::WaitUntilAlone(Nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return table_.present() == 0; });
}

}  // namespace penstock::rendezvous
