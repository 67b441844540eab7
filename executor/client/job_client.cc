#include "executor/client/job_client.h"

#include <algorithm>

#include "executor/client/initial_values.h"
#include "framework/ir/program.h"

namespace penstock::client {

JobClient::JobClient(std::function<std::unique_ptr<RpcClient>()> make) : make_(std::move(make)) {
  parts_[0].client = make_();
  count_ = 1;
}

Result<JobClient::Part*> JobClient::AddPart(const std::string& facts) {
  const int number = count_;
  if (number == kProgramsMax) {
    return InvalidArgument("E-plan-programs", "plan: this process runs programs of ", number,
                           " transpiles already; one job has at most ", kProgramsMax);
  }
  Part& part = parts_[static_cast<std::size_t>(number)];
  part.client = make_();
  part.facts = facts;
  count_ = number + 1;  // from now on Cancel and Abandon reach it
  return &part;
}

std::span<const JobClient::Part> JobClient::parts() const {
  const auto first = static_cast<std::size_t>(first_.load());
  return std::span(parts_).subspan(first, static_cast<std::size_t>(count_.load()) - first);
}

// Whether they are exchanged with servers that were replaced by others.
bool JobClient::HasMoved(const Exchanged& exchanged) const {
  return std::any_of(parts_.begin(), parts_.begin() + first_, [&](const Part& part) {
    return std::any_of(exchanged.begin(), exchanged.end(),
                       [&](const auto& one) { return part.exchanged.contains(one); });
  });
}

// The part to which a program belongs; null if it needs a new one.
JobClient::Part* JobClient::PartFor(const std::string& facts, const Exchanged& exchanged) {
  const auto begin = parts_.begin() + first_, end = parts_.begin() + count_;
  const auto same =
      std::find_if(begin, end, [&](const Part& part) { return !facts.empty() && part.facts == facts; });
  if (same != end) return &*same;
  const auto shares = std::find_if(begin, end, [&](const Part& part) {
    return std::any_of(exchanged.begin(), exchanged.end(),
                       [&](const auto& one) { return part.exchanged.contains(one); });
  });
  if (shares != end) return &*shares;
  if (facts.empty()) return &parts_[static_cast<std::size_t>(current_)];
  return begin->facts.empty() ? &*begin : nullptr;  // the first program with facts
}

// Two transpiles that update one variable would keep two copies of it.
Status JobClient::CheckAlone(const Part* part, const std::set<std::string>& received) const {
  for (const Part& other : parts()) {
    if (&other == part) continue;
    for (const std::string& name : received) {
      if (!other.received.contains(name)) continue;
      return InvalidArgument("E-plan-programs", "plan: ", name, " is received from pservers by programs of ",
                             "two transpiles, and each of them keeps a value of its own")
          .With(
              "transpile both programs with one startup_program, or give the second transpile "
              "beside=<the first transpiler>; each parameter has one program that updates it");
    }
  }
  return OkStatus();
}

Status JobClient::Attach(const Program& program) {
  const Result<protocol::TrainerContracts> read = protocol::ReadTrainer(program);
  const std::lock_guard lock(mutex_);
  if (!read.ok() || read->contracts.empty())  // the client reports the errors
    return current().Attach(program);
  Exchanged exchanged;
  for (const auto& [address, contract] : read->contracts) {
    for (std::size_t i = 0; i < contract.variable_count(); ++i)
      exchanged.emplace(address, contract.Variable(i).name);
  }
  std::set<std::string> received;
  for (const auto& [name, parts] : RemoteParts(program)) received.insert(name);
  if (HasMoved(exchanged)) return MovedError();
  const std::string& facts = program.meta().job_facts;
  Part* part = PartFor(facts, exchanged);
  PENSTOCK_RETURN_IF_ERROR(CheckAlone(part, received));
  if (part == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(part, AddPart(facts));
  }
  PENSTOCK_RETURN_IF_ERROR(part->client->Attach(program));
  if (part->facts.empty()) part->facts = facts;
  part->exchanged.merge(exchanged);
  part->received.merge(received);
  current_ = static_cast<int>(part - parts_.data());
  return OkStatus();
}

// A handle of the client n is the client's own, times kProgramsMax, plus n.
template <typename Handle>
Result<Handle> JobClient::Numbered(Result<Handle> of_client) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Handle own, std::move(of_client));
  return Handle{own.index * kProgramsMax + current_};
}

template <typename Handle>
std::pair<RpcClient&, Handle> JobClient::Of(Handle handle) const {
  const int number = handle.index % kProgramsMax;
  RpcClient& client = number < first_ ? moved_ : *parts_[static_cast<std::size_t>(number)].client;
  return {client, Handle{handle.index / kProgramsMax}};
}

Result<PushHandle> JobClient::DeclarePush(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  return Numbered(current().DeclarePush(piece));
}

Result<PullHandle> JobClient::DeclarePull(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  return Numbered(current().DeclarePull(piece));
}

Result<RowsHandle> JobClient::DeclareRows(const RemotePiece& piece) {
  const std::lock_guard lock(mutex_);
  return Numbered(current().DeclareRows(piece));
}

Result<PeersHandle> JobClient::DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) {
  const std::lock_guard lock(mutex_);
  return Numbered(current().DeclarePeers(pservers, trainer_id));
}

Status JobClient::Push(PushHandle piece, const Variable& value) {
  const auto [client, own] = Of(piece);
  return client.Push(own, value);
}

Status JobClient::PushWithResidual(PushHandle piece, const Tensor& value, const Tensor& residual) {
  const auto [client, own] = Of(piece);
  return client.PushWithResidual(own, value, residual);
}

Status JobClient::CountStep(PeersHandle pservers) {
  const auto [client, own] = Of(pservers);
  return client.CountStep(own);
}

Status JobClient::EndStep(PeersHandle pservers) {
  const auto [client, own] = Of(pservers);
  return client.EndStep(own);
}

Status JobClient::Pull(PullHandle piece, Variable& out) {
  const auto [client, own] = Of(piece);
  return client.Pull(own, out);
}

Status JobClient::PullAhead(PullHandle piece, Variable& out) {
  const auto [client, own] = Of(piece);
  return client.PullAhead(own, out);
}

Status JobClient::CompleteAhead() {
  return ForEach([](RpcClient& client) { return client.CompleteAhead(); });
}

Status JobClient::PullNext(PullHandle piece, Variable& out) {
  const auto [client, own] = Of(piece);
  return client.PullNext(own, out);
}

bool JobClient::PullsNext() const { return parts()[0].client->PullsNext(); }

Status JobClient::PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) {
  const auto [client, own] = Of(piece);
  return client.PullRows(own, ids, out);
}

Status JobClient::PullRowsAhead(RowsHandle piece, std::span<const std::int64_t> ids) {
  const auto [client, own] = Of(piece);
  return client.PullRowsAhead(own, ids);
}

bool JobClient::LooksAhead() const { return parts()[0].client->LooksAhead(); }

template <typename Call>
Status JobClient::ForEach(const Call& call) const {
  for (const Part& part : parts()) PENSTOCK_RETURN_IF_ERROR(call(*part.client));
  return OkStatus();
}

// Only the program that runs has open requests.
Status JobClient::CompleteRows() {
  return ForEach([](RpcClient& client) { return client.CompleteRows(); });
}

Status JobClient::PullChanged(PullHandle piece, std::shared_ptr<SelectedRows> out) {
  const auto [client, own] = Of(piece);
  return client.PullChanged(own, std::move(out));
}

Status JobClient::CompletePulls(PeersHandle pservers) {
  const auto [client, own] = Of(pservers);
  return client.CompletePulls(own);
}

Status JobClient::LeavePulls(PeersHandle pservers) {
  const auto [client, own] = Of(pservers);
  return client.LeavePulls(own);
}

Status JobClient::CompleteLeft() {
  return ForEach([](RpcClient& client) { return client.CompleteLeft(); });
}

Status JobClient::CompleteLeftInto(const Variable& variable) {
  return ForEach([&](RpcClient& client) { return client.CompleteLeftInto(variable); });
}

bool JobClient::HasLeft() const {
  return std::ranges::any_of(parts(), [](const Part& part) { return part.client->HasLeft(); });
}

bool JobClient::HasLeftInto(const Variable& variable) const {
  return std::ranges::any_of(parts(), [&](const Part& part) { return part.client->HasLeftInto(variable); });
}

Status JobClient::SaveTable(PeersHandle pservers, const std::string& table,
                            const std::vector<std::string>& files) {
  const auto [client, own] = Of(pservers);
  return client.SaveTable(own, table, files);
}

// The caller has attached the program that receives them.
Status JobClient::SetInitial(const std::vector<InitialPiece>& pieces) {
  RpcClient* client = nullptr;
  {
    const std::lock_guard lock(mutex_);
    client = &current();
  }
  return client->SetInitial(pieces);
}

// Several programs continue from no checkpoint (E-checkpoint-mode).
Result<std::uint64_t> JobClient::FirstStep() {
  return first_step_ ? Result<std::uint64_t>(*first_step_) : parts()[0].client->FirstStep();
}

std::uint64_t JobClient::step() const {
  std::uint64_t steps = 0;  // at servers that have moved, too
  for (int i = 0; i < count_; ++i) steps += parts_[static_cast<std::size_t>(i)].client->step();
  return steps;
}

const JobClient::Part* JobClient::Find(const Program& program) const {
  const std::string& facts = program.meta().job_facts;
  const std::span<const Part> found_in = parts();
  const auto found =
      std::ranges::find_if(found_in, [&](const Part& part) { return !facts.empty() && part.facts == facts; });
  return found == found_in.end() ? nullptr : &*found;
}

std::uint64_t JobClient::StepOf(const Program& program) const {
  const std::lock_guard lock(mutex_);
  if (parts().size() == 1) return step();
  const Part* part = Find(program);
  return part == nullptr ? 0 : part->client->step();
}

bool JobClient::IsOfAnotherProgram(const Program& program, const std::string& variable) const {
  const std::lock_guard lock(mutex_);
  if (parts().size() == 1) return false;
  const Part* own = Find(program);
  return std::ranges::any_of(
      parts(), [&](const Part& part) { return &part != own && part.received.contains(variable); });
}

Status JobClient::Complete() {
  return ForEach([](RpcClient& client) { return client.Complete(); });
}

void JobClient::Cancel() {
  for (const Part& part : parts()) part.client->Cancel();
}

void JobClient::Abandon(const Status& why) {
  for (const Part& part : parts()) part.client->Abandon(why);
}

std::uint64_t JobClient::step_here() const { return parts()[0].client->step(); }

// The client of the servers that have moved stays, because other threads may hold it.
Status JobClient::Move() {
  if (parts().size() > 1) {
    return InvalidArgument("E-scale-programs", "pservers of ", parts().size(),
                           " programs are not replaced by others");
  }
  const int next = count_;
  if (next == kProgramsMax) {
    return InvalidArgument("E-scale-programs", "the number of pservers has changed ", next - 1,
                           " times already, and this process can follow no more")
        .With("stop the job by SIGTERM, and continue it with --resume and the number that you want");
  }
  RpcClient& moved = *parts()[0].client;
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t first_step, FirstStep());
  auto* const leaving = dynamic_cast<Leaving*>(&moved);
  Status completed = leaving == nullptr ? moved.Complete() : leaving->Leave();
  const std::lock_guard lock(mutex_);
  first_step_ = first_step;
  parts_[static_cast<std::size_t>(next)].client = make_();
  count_ = next + 1;
  first_ = next;
  current_ = next;
  return completed;
}

}  // namespace penstock::client
